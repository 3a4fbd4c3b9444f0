# SPDX-License-Identifier: MIT
"""Checks that code reads plans by their fields. The role of an op and the name of a tensor are only shown to users, so
no code may compare them."""
import os
import pathlib
import re
import unittest

ROOT = pathlib.Path(os.environ["GSWBENCH_SOURCE_DIR"])
FOLDERS = ("predict", "verify", "step")
EXEMPT = {"src/step/fault.c"}  # finds the op that a user names in [fault]
COMPARES = re.compile(r"\b(?:str|mem|wcs)\w*\s*\([^;{]*?(?:\brole\b|\b(?:tensor|tensors\[[^;]*?\])(?:->|\.)name\b)")
ROLES = re.compile(r"\btag\.role\b")


def findings(path, text):
    """Returns the statements that compare a role or a tensor's name, or use a role outside of a message."""
    text = re.sub(r"//[^\n]*", "", text)
    wrong = [found.group(0) for found in COMPARES.finditer(text)]
    for found in ROLES.finditer(text):
        statement = text[max(text.rfind(end, 0, found.start()) for end in ";{}") + 1 : found.end()]
        if not re.search(r"\b(?:FATAL|fail|snprintf|text_add|fprintf)\s*\(", statement):
            wrong.append(statement.strip())
    return [f"{path}: {statement}" for statement in wrong]


class Role(unittest.TestCase):
    def test_nothing_is_decided_by_a_role_or_a_name(self):
        files = [path for folder in FOLDERS for path in sorted((ROOT / "src" / folder).glob("**/*.[ch]"))]
        self.assertGreater(len(files), 40)
        wrong = [found for path in files if str(path.relative_to(ROOT)) not in EXEMPT
                 for found in findings(path.relative_to(ROOT), path.read_text())]
        self.assertEqual(wrong, [])

    def test_what_decides_by_text_is_found(self):
        for text in ('if (strcmp(op->tag.role, "head") == 0) {', 'return strncmp(op->tag.role, role, strlen(role)) == 0;',
                     'x = strcmp(pass->launched[i]->tag.role,\n   op->tag.role) != 0;', "const char *role = op->tag.role;",
                     'a = strcmp(tensor->name, "attention") == 0;', 'strcmp(plan->tensors[i].name, name) == 0'):
            self.assertTrue(findings("a.c", text), text)
        for text in ('FATAL(EXIT_INTERNAL, "%s: %s", entry->op->tag.role, prepared.text);', "// by tag.role",
                     'strcmp(option->key, "profile") != 0'):
            self.assertEqual(findings("a.c", text), [], text)


if __name__ == "__main__":
    unittest.main()
