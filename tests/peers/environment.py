"""A Python environment of its own for the scripts that compare with ONNX Runtime."""
import importlib.util, os, subprocess, sys

SKIPPED = 77  # what ctest takes as "skipped"
PACKAGES = ("numpy", "onnx", "onnxruntime")


def ensure(folder):
    """Returns where this interpreter has the packages; otherwise makes a virtual environment in
    `folder` and runs the script again there, or exits with SKIPPED when that cannot be done."""
    if all(importlib.util.find_spec(p) for p in PACKAGES):
        return
    if "SOD2_PEER" not in os.environ:
        python = os.path.join(folder, "bin", "python")
        install = [python, "-m", "pip", "install", "--quiet", *PACKAGES]
        if all(subprocess.run(command, capture_output=True).returncode == 0
               for command in ([sys.executable, "-m", "venv", folder], install)):
            os.environ["SOD2_PEER"] = "1"
            os.execv(python, [python] + sys.argv)
    print("skipped: no environment with %s can be made" % ", ".join(PACKAGES))
    sys.exit(SKIPPED)
