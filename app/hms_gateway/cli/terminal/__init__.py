"""What every command needs: output, groups, signals."""
