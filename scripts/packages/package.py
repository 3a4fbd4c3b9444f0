# SPDX-License-Identifier: MIT
# Spack recipe. Copy it to packages/gswbench in a Spack repository, then: spack install gswbench +cuda cuda_arch=90a
from spack.package import *


class Gswbench(CMakePackage, CudaPackage):
    """Measures and predicts training steps of transformers."""

    git = "REPOSITORY"    # the address of your clone

    license("MIT")
    maintainers()

    version("main", branch="main")

    variant("mpi", default=True, description="Ranks as processes")

    depends_on("c", type="build")
    depends_on("cmake@3.22:", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("jansson")
    depends_on("xxhash@0.8:")
    depends_on("openblas")
    depends_on("openmpi@4:", when="+mpi")
    with when("+cuda"):
        depends_on("cxx", type="build")
        depends_on("cuda@12.4:")
        depends_on("nccl@2.27:")
        depends_on("cudnn@9.8:")
        conflicts("cuda_arch=none", msg="cuda_arch names the GPUs to compile for, such as 90a")

    def cmake_args(self):
        args = [
            self.define("GSWBENCH_TESTS", False),
            self.define("GSWBENCH_NATIVE", False),
            self.define_from_variant("GSWBENCH_MPI", "mpi"),
            self.define_from_variant("GSWBENCH_CUDA", "cuda"),
        ]
        if self.spec.satisfies("+cuda"):
            architectures = ";".join(f"{name}-real" for name in self.spec.variants["cuda_arch"].value)
            args.append(self.define("GSWBENCH_CUDA_ARCHITECTURES", architectures))
            args += [self.define(f"{name.upper()}_HOME", self.spec[name].prefix) for name in ("cuda", "nccl", "cudnn")]
        return args
