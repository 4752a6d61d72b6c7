#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Prints what benchmarks wrote with --json as tables in Markdown: to_markdown.py FILE…

One table of goals; with --figures also one of each section's figures."""

import argparse
import json


def goal_of(row):
    verdict = "met" if row["met"] else "**missed**"
    each = f" (each: {', '.join(str(one) for one in row['each'])})" if "each" in row else ""
    unit = row.get("unit", "")
    return f"| {row['name']} | {row['goal']:.3g}{unit} | {row['value']:.3g}{unit}{each} | {verdict} |"


def figures_of(row):
    hidden = ("name", "goal", "value", "unit", "met", "history", "skipped")
    figures = "; ".join(f"{key} {value}" for key, value in row.items() if key not in hidden)
    return f"| {row['name']} | {figures} |"


def tables(result, with_figures):
    rows = [row for section in result["sections"].values() for row in section]
    yield f"{result['benchmark']}, {result['cpus']} CPUs:\n"
    goals = [goal_of(row) for row in rows if "goal" in row]
    if goals:
        yield from ("| goal | at most | measured | |", "|---|---|---|---|", *goals, "")
    yield from (f"- {row['name']}: left out, {row['skipped']}" for row in rows if "skipped" in row)
    if with_figures:
        figures = [figures_of(row) for row in rows if "goal" not in row and "skipped" not in row]
        yield from ("", "| run | figures |", "|---|---|", *figures, "")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="+")
    parser.add_argument("--figures", action="store_true", help="also what each way gave")
    chosen = parser.parse_args()
    for path in chosen.files:
        with open(path, encoding="utf-8") as file:
            print("\n".join(tables(json.load(file), chosen.figures)))


if __name__ == "__main__":
    main()
