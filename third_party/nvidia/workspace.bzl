# SPDX-License-Identifier: Apache-2.0
"""NVIDIA's libraries, in the versions that LibTorch's wheel names. The two small ones are needed to load even LibTorch's
CPU library: no driver, no GPU. The others, and the compiler, are fetched by --config=cuda alone."""

load("@bazel_tools//tools/build_defs/repo:utils.bzl", "maybe")
load("//bazel:wheel.bzl", "wheel_archive")

# Package -> version, sha256 of the wheel, the libraries that LibTorch loads. The repository has the package's name, with
# underscores.
_CUDA_WHEELS = {
    "nvidia-cublas": (
        "13.1.0.3",
        "ee8722c1f0145ab246bccb9e452153b5e0515fd094c3678df50b2a0888b8b171",
        ["nvidia/cu13/lib/libcublas.so.13", "nvidia/cu13/lib/libcublasLt.so.13"],
    ),
    "nvidia-cuda-nvrtc": (
        "13.0.88",
        "ad9b6d2ead2435f11cbb6868809d2adeeee302e9bb94bcf0539c7a40d80e8575",
        ["nvidia/cu13/lib/libnvrtc.so.13", "nvidia/cu13/lib/libnvrtc-builtins.so.13.0"],
    ),
    "nvidia-cudnn-cu13": (
        "9.19.0.56",
        "d20e1734305e9d68889a96e3f35094d733ff1f83932ebe462753973e53a572bf",
        ["nvidia/cudnn/lib/libcudnn*.so.9"],
    ),
    "nvidia-cufft": (
        "12.0.0.61",
        "6c44f692dce8fd5ffd3e3df134b6cdb9c2f72d99cf40b62c32dde45eea9ddad3",
        ["nvidia/cu13/lib/libcufft.so.12"],
    ),
    "nvidia-cufile": (
        "1.15.1.6",
        "08a3ecefae5a01c7f5117351c64f17c7c62efa5fffdbe24fc7d298da19cd0b44",
        ["nvidia/cu13/lib/libcufile.so.0"],
    ),
    "nvidia-curand": (
        "10.4.0.35",
        "1aee33a5da6e1db083fe2b90082def8915f30f3248d5896bcec36a579d941bfc",
        ["nvidia/cu13/lib/libcurand.so.10"],
    ),
    "nvidia-cusolver": (
        "12.0.4.66",
        "0a759da5dea5c0ea10fd307de75cdeb59e7ea4fcb8add0924859b944babf1112",
        ["nvidia/cu13/lib/libcusolver.so.12"],
    ),
    "nvidia-cusparse": (
        "12.6.3.3",
        "2b3c89c88d01ee0e477cb7f82ef60a11a4bcd57b6b87c33f789350b59759360b",
        ["nvidia/cu13/lib/libcusparse.so.12"],
    ),
    "nvidia-cusparselt-cu13": (
        "0.8.0",
        "25e30a8a7323935d4ad0340b95a0b69926eee755767e8e0b1cf8dd85b197d3fd",
        ["nvidia/cusparselt/lib/libcusparseLt.so.0"],
    ),
    "nvidia-nccl-cu13": (
        "2.28.9",
        "e4553a30f34195f3fa1da02a6da3d6337d28f2003943aa0a3d247bbc25fefc42",
        ["nvidia/nccl/lib/libnccl.so.2"],
    ),
    "nvidia-nvjitlink": (
        "13.0.88",
        "13a74f429e23b921c1109976abefacc69835f2f433ebd323d3946e11d804e47b",
        ["nvidia/cu13/lib/libnvJitLink.so.13"],
    ),
    "nvidia-nvshmem-cu13": (
        "3.4.5",
        "290f0a2ee94c9f3687a02502f3b9299a9f9fe826e6d0287ee18482e78d495b80",
        ["nvidia/nvshmem/lib/libnvshmem_host.so.3"],
    ),
}

def nvidia():
    maybe(
        wheel_archive,
        name = "nvidia_cuda_runtime",
        package = "nvidia-cuda-runtime",
        version = "13.0.96",
        sha256 = "7f82250d7782aa23b6cfe765ecc7db554bd3c2870c43f3d1821f1d18aebf0548",
        members = [
            "nvidia/cu13/include/*",
            "nvidia/cu13/lib/libcudart.so.13",
        ],
        build_file = Label("//third_party/nvidia:cudart.BUILD.bazel"),
    )
    maybe(
        wheel_archive,
        name = "nvidia_cuda_cupti",
        package = "nvidia-cuda-cupti",
        version = "13.0.85",
        sha256 = "4eb01c08e859bf924d222250d2e8f8b8ff6d3db4721288cf35d14252a4d933c8",
        members = ["nvidia/cu13/lib/libcupti.so.13"],
        build_file = Label("//third_party/nvidia:cupti.BUILD.bazel"),
    )
    maybe(
        wheel_archive,
        name = "nvidia_cuda_nvcc",
        package = "nvidia-cuda-nvcc",
        version = "13.0.88",
        sha256 = "56fe502eb77625a12f25172caa3cdddb4e4c8ba2c8c17dba44b164761b380f03",
        companions = {
            "nvidia-cuda-cccl==13.0.85": "e0da7ad981f3a8aff08241b5bfc1af868742a63e2762f53a5171c492ef242649",
            "nvidia-cuda-crt==13.0.88": "2c8043c7c9e02492716426e9919fc78d2c5b3b2a7a768a88e952676b08aa55a4",
            "nvidia-nvvm==13.0.88": "c5f41ffeb6466944a026dfa5317d7d85355c119bbec279205d22f1869d1054e0",
        },
        members = ["nvidia/cu13/*"],
        build_file = Label("//third_party/nvidia:nvcc.BUILD.bazel"),
    )
    for package, (version, sha256, libraries) in _CUDA_WHEELS.items():
        maybe(
            wheel_archive,
            name = package.replace("-", "_"),
            package = package,
            version = version,
            sha256 = sha256,
            members = ["nvidia/*/include/*"] + libraries,
            build_file = Label("//third_party/nvidia:cuda_wheel.BUILD.bazel"),
        )
