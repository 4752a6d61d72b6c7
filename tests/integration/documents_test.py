#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What the programs say of themselves is what the man pages and the completion say of them.

The settings are held together with apuschedd.yaml(5) by tests/unit/settings_samples_test.cpp."""

import os
import re
import subprocess
import unittest

from harness import CTL, DAEMON, SOURCE, read

OPTION = re.compile(r"(?<![\w-])--?[a-z][a-z-]*(?![\w-])")
EVERYWHERE = {"-h", "--help"}


def help_of(*command):
    return subprocess.run([*command, "--help"], capture_output=True, text=True, check=True).stdout


def options(text):
    """Those that a --help describes."""
    described = [re.split(r" {2,}", line.strip())[0] for line in text.splitlines()
                 if line.startswith("  -")]
    return set(OPTION.findall(" ".join(described)))


def commands():
    """Every command of apuschedctl with its own options."""
    listed = help_of(CTL).split("Subcommands:")[1].splitlines()
    names = [line.split()[0] for line in listed if re.match(r"  [a-z]", line)]
    return {name: options(help_of(CTL, name)) - EVERYWHERE for name in names}


def page(name):
    text = read(os.path.join(SOURCE, "packaging", "man", name))
    return re.sub(r"\\f.", "", text.replace("\\-", "-")).replace('"', "")


def section(text, title):
    return text.split(f".SH {title}\n")[1].split("\n.SH ")[0]


def entry(text, command):
    """What the page says of one command."""
    entries = section(text, "COMMANDS").split(".TP\n")
    return next((part for part in entries if re.match(rf"\.BR? {command}\b", part)), "")


def codes_in_source(name):
    return set(re.findall(r" = (\d+),", read(os.path.join(SOURCE, name))))


def codes_in_page(text):
    lines = section(text, "EXIT STATUS").splitlines()
    return {code for line in lines for code in re.findall(r"\d+", line.split("  ")[0])}


class Documents(unittest.TestCase):
    def test_the_daemons_page_has_its_options_and_no_others(self):
        self.assertEqual(set(OPTION.findall(page("apuschedd.8"))), options(help_of(DAEMON)))

    def test_the_clients_page_has_every_command_with_its_options(self):
        text = page("apuschedctl.1")
        for command, own in commands().items():
            self.assertEqual(set(OPTION.findall(entry(text, command))), own, command)
        self.assertEqual(set(OPTION.findall(section(text, "OPTIONS"))) - {"--watch"},
                         options(help_of(CTL)))

    def test_the_pages_have_every_exit_code(self):
        self.assertEqual(codes_in_page(page("apuschedd.8")),
                         codes_in_source("daemon/options.hpp"))
        self.assertEqual(codes_in_page(page("apuschedctl.1")),
                         codes_in_source("client/ctl/exit_code.hpp"))

    def test_the_completion_offers_every_command_and_option(self):
        text = read(os.path.join(SOURCE, "packaging", "completions", "apuschedctl.bash"))
        top = re.search(r"'' *\) words='(.*)'", text).group(1).split()
        long = {name for name in options(help_of(CTL)) if name.startswith("--")}
        self.assertEqual(set(top), set(commands()) | long)
        for command, own in commands().items():
            offered = re.search(rf"(?m)^ *(?:[a-z]+\|)*{command}(?:\|[a-z]+)*\) words=(.*)$", text)
            words = set(OPTION.findall(offered.group(1))) if offered else set()
            self.assertEqual({name for name in own if name.startswith("--")} - words, set(), command)


if __name__ == "__main__":
    unittest.main(verbosity=2)
