#!/usr/bin/env python3
"""The example models, eight times narrower, as ONNX Runtime and `sod2 run` execute them.

twins.py SOD2 [--venv DIR] [--only NAME,NAME]

Exports each model, checks the file with onnx.checker and compares the outputs of both at five sizes.
Needs onnx, onnxruntime and numpy; where this interpreter has none, it makes a virtual environment in
DIR and runs itself there. Exits with 77 when that cannot be done.
"""
import argparse, os, subprocess, sys, tempfile

import environment

IMAGES = [dict(B=1, H=64, W=64), dict(B=2, H=32, W=64), dict(B=1, H=40, W=24), dict(B=3, H=24, W=32),
          dict(B=1, H=32, W=57)]
MULTIPLES_OF_8 = [dict(b, W=b["W"] // 8 * 8) for b in IMAGES]
MULTIPLES_OF_32 = [dict(B=b, H=h, W=w) for b, h, w in
                   [(1, 64, 64), (2, 32, 64), (1, 64, 32), (3, 32, 32), (1, 32, 64)]]
SIZES = {
    "stable_diffusion_encoder": MULTIPLES_OF_8,
    "segment_anything": [dict(P=p) for p in (1, 5, 2, 8, 3)],
    "conformer": [dict(B=b, T=t) for b, t in ((1, 64), (2, 7), (1, 33), (3, 50), (1, 21))],
    "codebert": [dict(B=b, L=l) for b, l in ((1, 64), (2, 1), (1, 17), (3, 33), (1, 48))],
    "yolo_v6": MULTIPLES_OF_32,
    "skipnet": IMAGES,
    "dgnet": [dict(B=b) for b in (1, 2, 3, 4, 5)],
    "convnet_aig": IMAGES,
    "ranet": IMAGES,
    "blockdrop": IMAGES,
    "mixture_of_experts": [dict(B=b, L=l) for b, l in ((1, 64), (2, 1), (1, 17), (3, 33), (1, 48))],
}


def made_up(name, shape, kind, rng, k):
    import numpy as np
    if name == "attention_mask":
        x = rng.integers(0, 2, shape)
        x[..., 0] = 1
        return x.astype(np.int64)
    if name == "point_labels":
        return rng.integers(-1, 4, shape).astype(np.int64)
    if name == "orig_im_size":
        return np.array([24 + 10 * k, 60 - 5 * k], np.int64)
    if name == "has_mask_input":
        return np.array([k % 2], np.float32)
    if kind == "tensor(bool)":
        return rng.random(shape) < 0.6
    if kind == "tensor(int64)":
        return rng.integers(0, 100, shape).astype(np.int64)
    return rng.standard_normal(shape).astype(np.float32)


def export(sod2, name, folder):
    """The path of the exported twin."""
    path = os.path.join(folder, name + ".onnx")
    done = subprocess.run([sod2, "export", name, "-o", path, "--scale", "0.125"],
                          capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError("export failed: " + done.stderr.strip())
    return path


def feed_at(session, sizes, rng, k):
    """Inputs for the k-th combination of sizes."""
    return {i.name: made_up(i.name, [d if isinstance(d, int) else sizes[d] for d in i.shape], i.type, rng, k)
            for i in session.get_inputs()}


def check(sod2, name, folder):
    import numpy as np, onnx, onnxruntime as ort
    path = export(sod2, name, folder)
    onnx.checker.check_model(onnx.load(path), full_check=True)
    session = ort.InferenceSession(path)
    rng, worst = np.random.default_rng(7), 0.0
    for k, sizes in enumerate(SIZES[name]):
        feed, command = feed_at(session, sizes, rng, k), [sod2, "run", path, "--output-dir", folder]
        for i, data in feed.items():
            file = os.path.join(folder, i + ".in.npy")
            np.save(file, data)
            command += ["--input", i + "=" + file]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            raise RuntimeError("run at %s failed: %s" % (sizes, done.stderr.strip()))
        for o, expected in zip(session.get_outputs(), session.run(None, feed)):
            got = np.load(os.path.join(folder, o.name + ".npy"))
            if got.shape != expected.shape:
                raise RuntimeError("%s at %s: shape %s, ONNX Runtime says %s" %
                                   (o.name, sizes, got.shape, expected.shape))
            if expected.dtype != np.float32:
                if not np.array_equal(got, expected):
                    raise RuntimeError("%s at %s differs" % (o.name, sizes))
                continue
            apart = float(np.abs(got - expected).max() / max(np.abs(expected).max(), 1e-6))
            worst = max(worst, apart)
            if not apart <= 1e-3:
                raise RuntimeError("%s at %s differs by %.1e of its largest value" % (o.name, sizes, apart))
    return worst


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("sod2")
    parser.add_argument("--venv", default="venv")
    parser.add_argument("--only", default="")
    arguments = parser.parse_args()
    environment.ensure(arguments.venv)
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        for name in SIZES:
            if arguments.only and name not in arguments.only.split(","):
                continue
            try:
                outcome = "equal at %d sizes, at most %.1e apart" % (
                    len(SIZES[name]), check(arguments.sod2, name, folder))
            except Exception as error:
                failed += 1
                outcome = "FAILED " + str(error).split("\n")[0]
            print("%-26s %s" % (name, outcome))
            sys.stdout.flush()
    print("%d failed" % failed)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
