"""A group of commands in which one of them can be left out."""

from __future__ import annotations

from typing import Any, ClassVar

from vsphere_ml.cli.commands import CommandGroup

OF_THE_GROUP = {"-h", "--help", "--show-completion", "--install-completion"}


class DefaultGroup(CommandGroup):
    """`vsml GROUP ...` means `vsml GROUP DEFAULT ...` where no command is named."""

    default: ClassVar[str]

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        # While a shell completes the first word, nothing is left out yet.
        completing = ctx.resilient_parsing and not args
        if self.default in self.commands and not completing and self.is_for_default(args):
            args = [self.default, *args]
        return super().parse_args(ctx, args)

    def is_for_default(self, args: list[str]) -> bool:
        """Return whether the command was left out: no word at all, or an option that is not the group's own."""
        return not args or (args[0].startswith("-") and args[0] not in OF_THE_GROUP)

    def shell_complete(self, ctx: Any, incomplete: str) -> list[Any]:
        """Return the commands that begin so, and the options of the one that can be left out."""
        own = super().shell_complete(ctx, incomplete)
        default = self.commands.get(self.default)
        if default is None or not incomplete.startswith("-"):
            return own
        with default.make_context(self.default, [], parent=ctx, resilient_parsing=True) as inner:
            known = {each.value for each in own}
            return [*own, *(each for each in default.shell_complete(inner, incomplete) if each.value not in known)]
