#!/usr/bin/env python3
"""Does time follow the share of blocks that run? Spearman's rank correlation over 20 inputs.

gates.py SOD2 [--scale S] [--open P] [--inputs N] [MODEL..]

Exports each gated model, makes images that differ in the level and contrast of each channel and
policies from none to all, and sets the fastest of several runs beside what ran: the number of
operators; for DGNet, which gates places and channels of blocks, that of products in the convolutions of
what it gathers. Needs nothing but Python.
"""
import argparse, array, json, math, os, random, subprocess, tempfile

SIDE = 128  # of an image, where the model leaves it open


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


def image_of(pick, side):
    """Each channel has a level and a contrast; up to `height` rows everything is flat."""
    pixels, height = [], pick.randrange(side)
    for _ in range(3):
        level, contrast = pick.uniform(-1.5, 1.5), pick.uniform(0.5, 2.5)
        pixels += [level + (contrast * pick.uniform(-1, 1) if row >= height else 0)
                   for row in range(side) for _ in range(side)]
    return pixels


def products(trace):
    """Of the convolutions of what was gathered: channels in times elements out."""
    with open(trace) as file:
        events = json.load(file)["traceEvents"]
    total, channels = 0, 0
    for e in sorted(events, key=lambda e: e["ts"]):
        if e["name"] == "GatherND":
            channels = e["args"]["shape"][1]
        elif e["name"] == "Conv" and channels:
            total, channels = total + channels * math.prod(e["args"]["shape"]), 0
    return total


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("sod2")
    parser.add_argument("models", nargs="*", default=["blockdrop", "convnet_aig", "skipnet", "ranet", "dgnet"])
    parser.add_argument("--scale", default="0.5")
    parser.add_argument("--open", default="0.85", help="share of gates that open")
    parser.add_argument("--inputs", type=int, default=20)
    o = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        model, image, policy, trace = (os.path.join(folder, f)
                                       for f in ("m.onnx", "image.npy", "policy.npy", "trace.json"))
        for name in o.models:
            subprocess.run([o.sod2, "export", name, "-o", model, "--scale", o.scale, "--open", o.open], check=True,
                           capture_output=True)
            described = subprocess.run([o.sod2, "analyze", model, "--json"], check=True, capture_output=True)
            shapes = {v["name"]: v["shape"] for v in json.loads(described.stdout)["values"]}
            side = shapes["image"][2] if isinstance(shapes["image"][2], int) else SIDE
            pick, ran, times = random.Random(7), [], []
            for k in range(o.inputs):
                save(image, "<f4", "f", (1, 3, side, side), image_of(pick, side))
                command = [o.sod2, "run", model, "--json", "--repeat", "30", "--input", "image=" + image]
                if "policy" in shapes:
                    gates = shapes["policy"][0]
                    save(policy, "|b1", "b", (gates,), [pick.random() < k / (o.inputs - 1) for _ in range(gates)])
                    command += ["--input", "policy=" + policy]
                if name == "dgnet":
                    command += ["--profile", trace]
                done = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
                ran.append(products(trace) if name == "dgnet" else done["nodes_run"])
                times.append(done["min_ms"])
            print("%-14s ran %d..%d (%d counts)  ms %.2f..%.2f  correlation %.3f" % (
                name, min(ran), max(ran), len(set(ran)), min(times), max(times),
                spearman(ran, times)), flush=True)


if __name__ == "__main__":
    main()
