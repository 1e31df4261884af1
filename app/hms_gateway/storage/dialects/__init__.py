"""What differs between SQLite, PostgreSQL and MariaDB or MySQL."""
