# SPDX-License-Identifier: MIT
"""ReFrame test that runs gswbench accept, with the step time as performance: reframe -c reframe_test.py -S config=NAME -r"""
import json
import pathlib

import reframe as rfm
import reframe.utility.sanity as sn
from reframe.core.builtins import performance_function, run_after, sanity_function, variable


@rfm.simple_test
class AcceptTest(rfm.RunOnlyRegressionTest):
    config = variable(str, value="llama3.1-8b")
    flags = variable(list, value=[])
    ranks = variable(int, value=8)
    ranks_per_node = variable(int, value=8)
    valid_systems = ["*"]
    valid_prog_environs = ["*"]
    executable = "gswbench"

    @run_after("init")
    def set_job(self):
        self.num_tasks = self.ranks
        self.num_tasks_per_node = min(self.ranks, self.ranks_per_node)
        self.executable_opts = ["accept", self.config, "-o", "accept", *self.flags]

    def document(self):
        return json.loads(pathlib.Path(self.stagedir, "accept", "accept.json").read_text())

    @sanity_function
    def is_accepted(self):
        document = self.document()
        return sn.assert_eq(document["verdict"], "accept", f"{document['verdict']}: {document['reason']}")

    @performance_function("s")
    def step(self):
        return self.document()["measured"]["step_s"]
