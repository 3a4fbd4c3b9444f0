# SPDX-License-Identifier: MIT
"""Reads config.merged.ini with the standard library alone."""
import configparser
import types


def read_config(path):
    """Returns the sections as namespaces. Values are numbers where possible, else strings."""
    parser = configparser.ConfigParser(interpolation=None)
    parser.read(path)
    config = types.SimpleNamespace()
    for section in parser.sections():
        values = {}
        for key, text in parser[section].items():
            try:
                number = float(text)
                values[key] = int(number) if number.is_integer() else number
            except ValueError:
                values[key] = {"yes": True, "no": False}.get(text, text)
        setattr(config, section.split()[0], types.SimpleNamespace(**values))
    return config
