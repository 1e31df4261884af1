"""Groups of commands."""

import click


class Group(click.Group):
    """Shows its commands in the order of their declaration."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)
