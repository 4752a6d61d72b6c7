#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Rules of CONTRIBUTING.md that no compiler checks, over all files that git tracks."""

import ast
import re
import subprocess
import sys

MAX_FILE_LINES = 450
MAX_FUNCTION_LINES = 60  # the aim is 40
CPP = (".cpp", ".hpp", ".h")
SHELL_SHEBANG = re.compile(r"#!.*\b(ba)?sh\b")
UNFINISHED = re.compile(r"\b(TODO|FIXME|XXX)\b|DISABLED_|GTEST_SKIP|unittest\.skip\(")
STRAY = re.compile(r"(?<![A-Za-z0-9_.])/(home|work|srv)/[A-Za-z]|\.\./shared")
INCLUDE = re.compile(r'#include "([a-z_]+)/')

# What a layer may include, besides itself and the standard library.
LAYERS = {
    "core": set(),
    "ports": {"core"},
    "app": {"core", "ports"},
    "settings": {"core"},
    "report": {"core", "ports"},
}


def tracked():
    names = subprocess.run(
        ["git", "ls-files", "-z"], capture_output=True, text=True, check=True
    ).stdout.split("\0")
    return [name for name in names if name]


def is_source(name, first):
    return name.endswith((*CPP, ".py", ".sh", ".cmake")) or SHELL_SHEBANG.match(first) is not None


def long_cpp_functions(lines):
    """Relies on clang-format: a function's last line is a brace at its first line's indentation."""
    for start, line in enumerate(lines):
        if not re.match(r"( *)[^ #/].*\{$", line) or not re.search(r"\)[^;=]*\{$", line):
            continue
        indent = re.match(r" *", line).group()
        if len(indent) > 2 or re.match(r" *(namespace|class|struct|if|for|while|switch)\b", line):
            continue
        for end in range(start + 1, len(lines)):
            if lines[end].startswith(indent + "}"):
                if end - start + 1 > MAX_FUNCTION_LINES:
                    yield start + 1, end - start + 1
                break


def long_python_functions(text):
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            length = node.end_lineno - node.lineno + 1
            if length > MAX_FUNCTION_LINES:
                yield node.lineno, length


def forbidden_includes(name, lines):
    parts = name.split("/")
    if parts[0] != "daemon" or parts[1] not in LAYERS:
        return
    allowed = LAYERS[parts[1]] | {parts[1]}
    for number, line in enumerate(lines, 1):
        found = INCLUDE.match(line)
        if found and found.group(1) not in allowed:
            yield number, found.group(1)


def problems_of(name, text):
    lines = text.splitlines()
    first_lines = "\n".join(lines[:4])
    if is_source(name, lines[0] if lines else ""):
        if "SPDX-License-Identifier: MIT" not in first_lines:
            yield 1, "no SPDX line"
        if len(lines) > MAX_FILE_LINES:
            yield len(lines), f"{len(lines)} lines, at most {MAX_FILE_LINES}"
        for number, line in enumerate(lines, 1):
            if UNFINISHED.search(line) and name != "packaging/house_rules.py":
                yield number, "unfinished or skipped: finish it, or file an issue"
    for number, line in enumerate(lines, 1):
        if STRAY.search(line) and name != "packaging/house_rules.py":
            yield number, "a path of somebody's machine"
    long_functions = ()
    if name.endswith(CPP):
        long_functions = long_cpp_functions(lines)
    elif name.endswith(".py"):
        long_functions = long_python_functions(text)
    for number, length in long_functions:
        yield number, f"a function of {length} lines, at most {MAX_FUNCTION_LINES}"
    for number, layer in forbidden_includes(name, lines):
        yield number, f"this layer must not include {layer}/"


def main():
    count = 0
    for name in tracked():
        try:
            with open(name, encoding="utf-8") as file:
                text = file.read()
        except (UnicodeDecodeError, FileNotFoundError, IsADirectoryError):
            continue  # binary samples; files that are being removed
        for number, problem in problems_of(name, text):
            print(f"{name}:{number}: {problem}")
            count += 1
    print(f"house rules: {count} problems")
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main())
