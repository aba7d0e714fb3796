#!/usr/bin/env python3
"""Does time follow the share of blocks that run? Spearman's rank correlation over 20 inputs.

gates.py SOD2 [--scale S] [--inputs N] [MODEL..]

Exports each gated model, makes images from faint to strong and policies from none to all, and sets
the fastest of several runs beside the number of operators that ran. Needs nothing but Python.
"""
import argparse, array, json, os, random, subprocess, tempfile

SIDE = 128


def save(path, kind, code, shape, data):
    head = "{'descr': '%s', 'fortran_order': False, 'shape': (%s,), }" % (kind, ", ".join(map(str, shape)))
    head += " " * (117 - len(head)) + "\n"
    with open(path, "wb") as f:
        f.write(b"\x93NUMPY\x01\x00\x76\x00" + head.encode() + array.array(code, data).tobytes())


def ranks(values):
    order = sorted(values)
    return [order.index(v) + (order.count(v) - 1) / 2 for v in values]


def spearman(a, b):
    a, b = ranks(a), ranks(b)
    m, n = sum(a) / len(a), sum(b) / len(b)
    cross = sum((x - m) * (y - n) for x, y in zip(a, b))
    spread = sum((x - m) ** 2 for x in a) * sum((y - n) ** 2 for y in b)
    return cross / spread ** 0.5 if spread > 0 else 0.0


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("sod2")
    parser.add_argument("models", nargs="*", default=["blockdrop", "convnet_aig", "skipnet", "ranet"])
    parser.add_argument("--scale", default="0.5")
    parser.add_argument("--inputs", type=int, default=20)
    o = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        model, image, policy = (os.path.join(folder, f) for f in ("m.onnx", "image.npy", "policy.npy"))
        for name in o.models:
            subprocess.run([o.sod2, "export", name, "-o", model, "--scale", o.scale], check=True,
                           capture_output=True)
            pick, nodes, times = random.Random(7), [], []
            for k in range(o.inputs):
                strength = 0.1 + 4 * k / o.inputs
                save(image, "<f4", "f", (1, 3, SIDE, SIDE),
                     [strength * pick.uniform(-1, 1) for _ in range(3 * SIDE * SIDE)])
                command = [o.sod2, "run", model, "--json", "--repeat", "15", "--input", "image=" + image]
                if name == "blockdrop":
                    save(policy, "|b1", "b", (33,), [pick.random() < k / (o.inputs - 1) for _ in range(33)])
                    command += ["--input", "policy=" + policy]
                done = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
                nodes.append(done["nodes_run"])
                times.append(done["min_ms"])
            print("%-14s operators %d..%d (%d counts)  ms %.2f..%.2f  correlation %.3f" % (
                name, min(nodes), max(nodes), len(set(nodes)), min(times), max(times),
                spearman(nodes, times)), flush=True)


if __name__ == "__main__":
    main()
