"""Measures the code's house: how full folders are, how long functions, and how many names break the naming rules.

The words of the old dialect stand in one place, the table of docs/explanation/glossary.md. tests/unit/house.json holds
what is still allowed; tests/unit/test_house.py fails when something grows.

python scripts/measure_house.py            # print the measures
python scripts/measure_house.py --offenders dialect   # and each offender of one measure
python scripts/measure_house.py --renew    # lower what is allowed to what is there now
"""

from __future__ import annotations

import argparse
import ast
import json
import re
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

ROOT = Path(__file__).parents[1]
GLOSSARY = "docs/explanation/glossary.md"
ALLOWED = "tests/unit/house.json"
FULL_FOLDER = 14
MANY_PARAMETERS = 6
LONG_FUNCTION = 30
# Names of other libraries, and our own old names where an error says what they are called now.
NOT_OURS = frozenset({"look_for_keys", "door", "anchors"})
RATCHETS = {  # each measure that may not grow, as it is printed
    "ungreppable": "functions named by a lone participle, adjective or preposition",
    "double": "public classes whose name another has",
    "dialect": "names and texts in dialect",
    "sentences": "sentences that tests assert",
    "parameters": f"functions with more than {MANY_PARAMETERS} parameters",
}


def words(text: str) -> frozenset[str]:
    """Return the words of a list that stands as a text, so that it is short to read."""
    return frozenset(text.split())


PREPOSITIONS = words("""
    about above after again against apart around as at before below besides between beyond by down for from in inside
    into of off on once onto out outside over since through to together twice under until up upon with within without
""")
ADJECTIVES = words("""
    absolute alike alive alone bad bare better busy certain different due empty enough equal few fewest fine finite
    first flat former foreign full good idle incomplete inner invalid known larger last late lean least less linear
    maximal more most narrow natural near nearest new normal numeric odd old online only other others own plain
    positive quiet ready safe same several short slow slowest small sound spare stale static strange suitable sure
    true uneven unfit unknown unlike usable valid whole wrong
""")
IRREGULAR_PARTICIPLES = words("""
    begun bound bought broken brought built caught chosen dealt done drawn driven felt forgotten fought found frozen
    given gone gotten grown heard held hidden hung kept known laid led lent lost made meant met misplaced overdue
    paid proven risen said seen sent shown sold spent spoken stolen stood stuck sunk taken taught thought told torn
    unbound undone unwritten woken won worn woven written
""")
# Words that are verbs or nouns too, in the same form.
VERBS_AND_NOUNS = words("""
    ansible building embed encoding ending exceed feed finding mapping need nothing proceed rendering rounding routing
    scaling seed setting shed speed string succeed table timing training variable
""")


@dataclass(frozen=True, slots=True)
class Offender:
    """One thing that breaks a naming rule: the name that is counted, and where it stands."""

    name: str
    place: str
    why: str = ""

    def __str__(self) -> str:
        return f"{self.place}: {self.name}" + (f" ({self.why})" if self.why else "")


@dataclass(frozen=True, slots=True)
class Module:
    """A parsed Python file; its path is relative to the root."""

    path: Path
    lines: int
    tree: ast.Module
    nodes: tuple[ast.AST, ...]  # all of the tree, since walking it takes most of the time

    @classmethod
    def parse(cls, path: Path, text: str) -> Module:
        """Parse a file's text."""
        tree = ast.parse(text)
        return cls(path, text.count("\n"), tree, tuple(ast.walk(tree)))

    @property
    def file_name(self) -> str:
        """The name under which it is found: its own, or of `__init__.py` that of its folder."""
        return self.path.name if self.path.stem != "__init__" else f"{self.path.parent.name}/"

    def place(self, node: ast.AST) -> str:
        """Return the file and line of a node."""
        return f"{self.path}:{getattr(node, 'lineno', 1)}"


@dataclass(slots=True)
class Measures:
    """What was measured of a tree: figures to print, and the offenders of each ratchet."""

    figures: dict[str, str] = field(default_factory=dict)
    offenders: dict[str, list[Offender]] = field(default_factory=dict)


def read_modules(root: Path, folder: str) -> list[Module]:
    """Parse all Python files of a folder, in the order of their paths."""
    paths = sorted((root / folder).rglob("*.py"))
    return [Module.parse(path.relative_to(root), path.read_text("utf-8")) for path in paths]


def functions(module: Module) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Yield every function of a module, methods and inner ones too."""
    return (node for node in module.nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def public_classes(module: Module) -> Iterator[ast.ClassDef]:
    """Yield the module's top-level classes whose names begin with no underscore."""
    return (node for node in module.tree.body if isinstance(node, ast.ClassDef) and not node.name.startswith("_"))


def split_words(name: str) -> list[str]:
    """Split an identifier, option or sentence into lower-case words: `HostWish`, `host_wish` and `host-wish` alike."""
    return [word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", name)]


def is_participle(word: str) -> bool:
    """Tell whether a lone word reads as a participle: told, seated, standing."""
    if word in VERBS_AND_NOUNS:
        return False
    return word in IRREGULAR_PARTICIPLES or (len(word) > 4 and word.endswith(("ed", "ing")))  # noqa: PLR2004 - not bed, ring


def is_adjective(word: str) -> bool:
    """Tell whether a lone word reads as an adjective or adverb: same, usable, patiently."""
    if word in VERBS_AND_NOUNS:
        return False
    return word in ADJECTIVES or (len(word) > 5 and word.endswith(("able", "ible", "ently", "antly")))  # noqa: PLR2004


def is_ungreppable(name: str) -> bool:
    """Tell whether a function's name is nothing but participles, adjectives and prepositions."""
    parts = [part for part in name.split("_") if part]
    return bool(parts) and all(is_participle(part) or is_adjective(part) or part in PREPOSITIONS for part in parts)


def ungreppable_functions(modules: Iterable[Module]) -> list[Offender]:
    """List the module-level functions whose names cannot be searched for."""
    return [
        Offender(node.name, module.place(node))
        for module in modules
        for node in module.tree.body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and is_ungreppable(node.name)
    ]


def double_class_names(modules: Iterable[Module]) -> list[Offender]:
    """List every public class whose name another public class has too."""
    found = [(node.name, module.place(node)) for module in modules for node in public_classes(module)]
    uses = Counter(name for name, _ in found)
    return [Offender(name, place) for name, place in found if uses[name] > 1]


@dataclass(frozen=True, slots=True)
class Dialect:
    """The old dialect: words that no name may have, and words and phrases that no message may have."""

    in_names: frozenset[str]
    in_messages: frozenset[str]

    def find_in_name(self, name: str) -> list[str]:
        """Return the dialect words of an identifier, option, key, column or code."""
        return [] if name in NOT_OURS else [word for word in split_words(name) if word in self.in_names]

    def find_in_message(self, text: str) -> list[str]:
        """Return the dialect words and phrases of a sentence, each once."""
        spaced = f" {' '.join(split_words(text))} "
        return sorted(each for each in self.in_messages if f" {each} " in spaced)


def read_dialect(glossary: str) -> Dialect:
    """Read the column *dialect* of the glossary: a word before ° is fine in a sentence, a phrase is no name."""
    names: set[str] = set()
    messages: set[str] = set()
    column = None
    for line in glossary.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")] if line.startswith("|") else []
        if not cells:
            column = None
        elif "dialect" in cells:
            column = cells.index("dialect")
        elif column is not None and column < len(cells):
            for word, mark in re.findall(r"`([a-z ]+)`(°?)", cells[column]):
                names |= set() if " " in word else {word}
                messages |= set() if mark else {word}
    return Dialect(frozenset(names), frozenset(messages))


def defined_names(module: Module) -> Iterator[tuple[str, ast.AST]]:
    """Yield each name that a module defines, with its node: classes, functions, parameters, fields and variables."""
    for node in module.nodes:
        match node:
            case ast.ClassDef(name=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield name, node
            case ast.arg(arg=name):
                yield name, node
            case ast.Name(id=name, ctx=ast.Store()):
                yield name, node
            case ast.Attribute(attr=name, ctx=ast.Store()):
                yield name, node


def docstrings(module: Module) -> set[int]:
    """Return the ids of the nodes that are docstrings, but for those of commands, which are help."""
    found = set()
    for node in module.nodes:
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and node.body:
            first = node.body[0]
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and not is_command(node):
                found.add(id(first.value))
    return found


def is_command(node: ast.AST) -> bool:
    """Tell whether a function is a command of the command line, whose docstring is its help."""
    return any("command" in ast.unparse(each) for each in getattr(node, "decorator_list", ()))


def kind_of_text(text: str) -> str:
    """Return what a text without spaces is taken for: option, code, column or key; else message."""
    if re.search(r"\s", text.strip()):
        return "message"
    if text.startswith("--"):
        return "option"
    if re.fullmatch(r"[a-z]+\.[a-z0-9-]+", text):
        return "code"
    return "column" if text.isupper() else "key"


def dialect_in_names(module: Module, dialect: Dialect) -> Iterator[Offender]:
    """Yield the names that a module defines, and its own, that hold a dialect word; each once a module."""
    once = {module.file_name: f"{module.path}:1"}
    for name, node in defined_names(module):
        once.setdefault(name, module.place(node))
    for name, place in once.items():
        found = dialect.find_in_name(name.removesuffix(".py"))
        if found:
            yield Offender(name, place, ", ".join(found))


def dialect_in_texts(module: Module, dialect: Dialect) -> Iterator[Offender]:
    """Yield the options, codes, columns, keys and messages of a module that hold a dialect word."""
    skipped = docstrings(module)
    for node in module.nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in skipped:
            kind = kind_of_text(node.value)
            found = (dialect.find_in_message if kind == "message" else dialect.find_in_name)(node.value)
            if found:
                name = f"{kind}: {short(node.value)}"
                yield Offender(name, module.place(node), ", ".join(dict.fromkeys(found)))


def dialect_words(modules: Iterable[Module], dialect: Dialect) -> list[Offender]:
    """List everything in modules that a user or reader sees named in the old dialect."""
    return [o for module in modules for o in (*dialect_in_names(module, dialect), *dialect_in_texts(module, dialect))]


def short(text: str) -> str:
    """Return a text on one line, cut to 60 characters."""
    return " ".join(text.split())[:60]


def is_sentence(text: str) -> bool:
    """Tell whether a text is English prose: three words or more that are letters, each after a space."""
    return len(re.findall(r"(?:^|(?<=\s))[A-Za-z][a-z']*(?=[\s,.:;]|$)", text)) > 2  # noqa: PLR2004


def asserted(module: Module) -> Iterator[ast.AST]:
    """Yield what tests compare with: the conditions of asserts, and what `match=` expects of an error."""
    for node in module.nodes:
        if isinstance(node, ast.Assert):
            yield node.test
        elif isinstance(node, ast.keyword) and node.arg == "match":
            yield node.value


def sentences_in_tests(modules: Iterable[Module]) -> list[Offender]:
    """List the English sentences that tests assert, as far as they stand in the assert itself."""
    return [
        Offender(short(node.value), module.place(node))
        for module in modules
        for each in asserted(module)
        for node in ast.walk(each)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and is_sentence(node.value)
    ]


def quantile(values: list[int], share: float) -> int:
    """Return the smallest value that is not exceeded by this share of the values (0 to 1); 0 of none."""
    return sorted(values)[max(0, -int(-share * len(values) // 1) - 1)] if values else 0


def count_parameters(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Count a function's parameters, without self and cls."""
    arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs, node.args.vararg, node.args.kwarg]
    return sum(each is not None and each.arg not in {"self", "cls"} for each in arguments)


def many_parameters(modules: Iterable[Module]) -> list[Offender]:
    """List the functions that take more parameters than one can tell apart at a call."""
    return [
        Offender(node.name, module.place(node))
        for module in modules
        for node in functions(module)
        if count_parameters(node) > MANY_PARAMETERS
    ]


def measure_folders(modules: Iterable[Module]) -> dict[str, str]:
    """Count the files of each folder, `__init__` left out."""
    files = Counter(str(module.path.parent) for module in modules if module.path.stem != "__init__")
    full = [f"{folder} {count}" for folder, count in files.most_common() if count > FULL_FOLDER]
    return {f"folders of more than {FULL_FOLDER} files": f"{len(full)}: {', '.join(full)}" if full else "0"}


def measure_functions(modules: list[Module]) -> dict[str, str]:
    """Measure how long functions are in lines, and how many parameters they take."""
    found = [(module, node) for module in modules for node in functions(module)]
    lengths = [(node.end_lineno or node.lineno) - node.lineno + 1 for _, node in found]
    parameters = [count_parameters(node) for _, node in found]
    flows = [count_parameters(node) for module, node in found if "flows" in module.path.parts]
    short = 100 * sum(length < LONG_FUNCTION for length in lengths) / max(1, len(lengths))
    return {
        "functions": str(len(found)),
        "lines of a function: median, 98.7 %, longest": ", ".join(
            str(value) for value in (int(median(lengths or [0])), quantile(lengths, 0.987), max(lengths, default=0))
        ),
        f"functions under {LONG_FUNCTION} lines": f"{short:.1f} %",
        "parameters at most: all, flows": f"{max(parameters, default=0)}, {max(flows, default=0)}",
    }


def measure_renames(modules: list[Module], glossary: str) -> dict[str, str]:
    """Count the files and classes that the glossary renames and that still have their old names."""
    there = {(str(module.path), node.name) for module in modules for node in public_classes(module)}
    there |= {(str(module.path), "") for module in modules}
    renames = re.findall(r"^\| `(\S+\.py)`(?: `(\w+)`)? \| `\S+\.py`", glossary, re.MULTILINE)
    left = sum((f"vsphere_ml/{path}", name) in there for path, name in renames)
    return {"renames of files and classes to do": f"{left} of {len(renames)}"}


def measure(root: Path = ROOT) -> Measures:
    """Measure the product's and the tests' Python under a root."""
    product, tests = read_modules(root, "vsphere_ml"), read_modules(root, "tests")
    glossary = (root / GLOSSARY).read_text("utf-8")
    dialect = read_dialect(glossary)
    classes = [node.name for module in product for node in public_classes(module)]
    made = Measures()
    made.figures = {
        "lines of the product": str(sum(module.lines for module in product)),
        "files of the product": str(len(product)),
        **measure_folders(product),
        **measure_functions(product),
        "public classes": str(len(classes)),
        **measure_renames(product, glossary),
    }
    made.offenders = {
        "ungreppable": ungreppable_functions(product),
        "double": double_class_names(product),
        "dialect": dialect_words(product, dialect),
        "sentences": sentences_in_tests(tests),
        "parameters": many_parameters(product),
    }
    return made


Allowed = dict[str, dict[str, int]]  # how many offenders: by `names`, and by `files`


def file_of(offender: Offender) -> str:
    """Return the file that an offender stands in."""
    return offender.place.rpartition(":")[0]


def count_offenders(offenders: list[Offender]) -> Allowed:
    """Count offenders by name and by file, each in order."""
    return {
        "names": dict(sorted(Counter(each.name for each in offenders).items())),
        "files": dict(sorted(Counter(file_of(each) for each in offenders).items())),
    }


def read_allowed(root: Path = ROOT) -> dict[str, Allowed]:
    """Read how many offenders are still allowed, for each ratchet."""
    allowed: dict[str, Allowed] = json.loads((root / ALLOWED).read_text("utf-8"))
    return allowed


def new_offenders(found: list[Offender], allowed: Allowed) -> list[Offender]:
    """List what stands for more offenders than are allowed: none while their number has not grown.

    Only the sum counts, so that a rename or a move that makes nothing worse passes. Names and files that have more than
    before tell which offenders are new.
    """
    if len(found) <= sum(allowed["names"].values()):
        return []
    now = count_offenders(found)
    named = [each for each in found if now["names"][each.name] > allowed["names"].get(each.name, 0)]
    nearer = [each for each in named if now["files"][file_of(each)] > allowed["files"].get(file_of(each), 0)]
    return nearer or named


def renew(measures: Measures, root: Path = ROOT) -> None:
    """Lower what is allowed to what is there now.

    Raises:
        ValueError: when a number would grow; nothing is written then.
    """
    path = root / ALLOWED
    allowed = read_allowed(root) if path.exists() else {}
    for ratchet, found in measures.offenders.items():
        grown = new_offenders(found, allowed[ratchet]) if ratchet in allowed else []
        if grown:
            raise ValueError(
                f"more {RATCHETS[ratchet]} than before, and the numbers may only fall:\n" + "\n".join(map(str, grown))
            )
    now = {ratchet: count_offenders(found) for ratchet, found in measures.offenders.items()}
    path.write_text(json.dumps(now, indent=0, ensure_ascii=False) + "\n", "utf-8")


def print_measures(measures: Measures) -> None:
    """Print the figures and the numbers of offenders as a table of Markdown."""
    rows = {**measures.figures, **{RATCHETS[name]: str(len(found)) for name, found in measures.offenders.items()}}
    print("| measure | now |\n|---|---|")
    for name, value in rows.items():
        print(f"| {name} | {value} |")


def main(arguments: list[str] | None = None) -> int:
    """Run as a script; returns the exit status."""
    parser = argparse.ArgumentParser(description="Measure the code's house.")
    parser.add_argument("--renew", action="store_true", help="lower the allowed numbers to today's")
    parser.add_argument("--offenders", choices=RATCHETS, help="list each offender of this measure")
    options = parser.parse_args(arguments)
    measures = measure()
    print_measures(measures)
    for offender in measures.offenders.get(options.offenders, ()):
        print(offender)
    if options.renew:
        try:
            renew(measures)
        except ValueError as error:
            print(error, file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
