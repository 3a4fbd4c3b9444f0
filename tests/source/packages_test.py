# SPDX-License-Identifier: MIT
"""Checks the files in scripts/packages: manifests have the fields that their kinds require, and their commands use
flags that the program has. Also checks the usage of scripts."""
import ast
import os
import pathlib
import re
import shlex
import subprocess
import tempfile
import unittest

try:
    import yaml
except ImportError:
    yaml = None

FOLDER = pathlib.Path(os.environ["GSWBENCH_SOURCE_DIR"]) / "scripts/packages"
PROGRAM = os.environ["GSWBENCH"]


def manifest(name):
    return yaml.load((FOLDER / name).read_text(), Loader=yaml.BaseLoader)    # BaseLoader keeps the key "on" and numbers as text


def check(words):
    """Runs gswbench check with the config and the number of ranks of a command that would start a cluster job."""
    config = words[words.index("--config") + 1]
    ranks = words[words.index("-np") + 1]
    subprocess.run([PROGRAM, "check", "--config", config, "--ranks", ranks], check=True, capture_output=True)


class Packages(unittest.TestCase):
    def check_pod(self, pod, image="gswbench"):
        """Checks that the containers of a pod have names and images, and that each mount has a volume of one kind."""
        volumes = {volume["name"]: set(volume) - {"name"} for volume in pod.get("volumes", [])}
        for container in pod["containers"]:
            self.assertRegex(container["name"], r"^[a-z0-9-]{1,63}$")
            self.assertEqual(container["image"], image)
            self.assertLessEqual(set(container), {"name", "image", "command", "args", "resources", "volumeMounts"})
            for mount in container.get("volumeMounts", []):
                self.assertEqual(set(mount), {"name", "mountPath"})
                self.assertIn(mount["name"], volumes)
        for kinds in volumes.values():
            self.assertIn(kinds, ({"emptyDir"}, {"persistentVolumeClaim"}))

    @unittest.skipUnless(yaml, "needs python3-yaml")
    def test_job(self):
        job = manifest("job.yaml")
        self.assertEqual((job["apiVersion"], job["kind"]), ("batch/v1", "Job"))
        pod = job["spec"]["template"]["spec"]
        self.assertEqual(pod["restartPolicy"], "Never")    # a Job accepts Never or OnFailure
        self.check_pod(pod)
        container = pod["containers"][0]
        self.assertEqual(container["resources"]["limits"], {"nvidia.com/gpu": "8"})
        check(container["command"] + container["args"])

    @unittest.skipUnless(yaml, "needs python3-yaml")
    def test_mpijob(self):
        job = manifest("mpijob.yaml")
        self.assertEqual((job["apiVersion"], job["kind"]), ("kubeflow.org/v2beta1", "MPIJob"))
        replicas = job["spec"]["mpiReplicaSpecs"]
        self.assertEqual(set(replicas), {"Launcher", "Worker"})
        for replica in replicas.values():
            self.check_pod(replica["template"]["spec"])
        self.assertEqual(replicas["Launcher"]["replicas"], "1")
        launcher, worker = (replicas[name]["template"]["spec"]["containers"][0] for name in ("Launcher", "Worker"))
        words = launcher["command"] + launcher["args"]
        slots = int(job["spec"]["slotsPerWorker"])
        self.assertEqual(int(words[words.index("-np") + 1]), slots * int(replicas["Worker"]["replicas"]))
        self.assertEqual(worker["resources"]["limits"], {"nvidia.com/gpu": str(slots)})
        check(words)

    @unittest.skipUnless(yaml, "needs python3-yaml")
    def test_workflow(self):
        workflow = manifest("predict.yml")
        self.assertEqual(workflow["on"], "pull_request")
        steps = workflow["jobs"]["predict"]["steps"]
        self.assertEqual([set(step) & {"uses", "run"} for step in steps], [{"uses"}, {"run"}, {"run"}, {"uses"}])
        self.assertEqual(self.predict(steps[2]["run"], "preset = llama3.1-8b\n"), 0)
        self.assertEqual(self.predict(steps[2]["run"], "preset = llama3.1-8b\nlayers = 40\n"), 6)    # 40 layers, not 32: slower by more than the prediction error

    def predict(self, step, model):
        """Runs a step of the workflow in a new repository. The base commit predicts Llama 3.1 8B, the working tree `model`.
        Returns the exit code."""
        job = "[model]\n{}[parallel]\nfsdp = auto\n[train]\nsequence = 4096\nmicro_batch = 1\nglobal_batch = 64\n[hardware]\nprofile = h100-sxm\n"
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "job.ini"
            file.write_text(job.format("preset = llama3.1-8b\n"))
            subprocess.run("git init -q && git add job.ini && git -c user.name=a -c user.email=a@b commit -qm base && "
                           "git update-ref refs/remotes/origin/main HEAD", shell=True, check=True, cwd=folder)
            file.write_text(job.format(model))
            environment = os.environ | {"GITHUB_BASE_REF": "main", "PATH": f"{pathlib.Path(PROGRAM).parent}:{os.environ['PATH']}"}
            result = subprocess.run(["bash", "-ec", step], cwd=folder, env=environment, capture_output=True, text=True)
            self.assertTrue((pathlib.Path(folder) / "comparison.html").exists(), result.stderr)
            return result.returncode

    def test_dockerfile(self):
        lines = [line.split(None, 1) for line in (FOLDER / "Dockerfile").read_text().splitlines() if line and line[0] != "#"]
        self.assertEqual([word for word, _ in lines],
                         ["ARG", "FROM", "RUN", "RUN", "ADD", "RUN", "ENV", "WORKDIR", "ENTRYPOINT"])
        for word, text in lines:
            if word == "RUN":
                subprocess.run(["bash", "-nc", text], check=True)
            elif word == "ENV":
                self.assertTrue(all("=" in part for part in shlex.split(text)))

    def test_spack_recipe(self):
        recipe = ast.parse((FOLDER / "package.py").read_text())
        package = next(node for node in recipe.body if isinstance(node, ast.ClassDef))
        self.assertEqual(package.name, "Gswbench")
        self.assertEqual([base.id for base in package.bases], ["CMakePackage", "CudaPackage"])
        options = (FOLDER.parents[1] / "cmake/options.cmake").read_text()
        defined = re.findall(r'"(GSWBENCH_\w+)"', (FOLDER / "package.py").read_text())
        self.assertGreaterEqual(len(defined), 5)
        for name in defined:
            self.assertRegex(options, rf"\b{name}\b")

    def test_a_script_that_gets_a_wrong_flag_prints_its_usage_and_does_nothing(self):
        for name in ("atlas", "coverage", "demo", "gpu-check", "gpu-pack", "package", "test"):
            script = subprocess.run([FOLDER.parent / name, "--nosuch"], capture_output=True, text=True, timeout=60)
            self.assertEqual((script.returncode, script.stdout), (2, ""), name)
            self.assertRegex(script.stderr, f"^usage: scripts/{name}", name)


if __name__ == "__main__":
    unittest.main()
