#!/usr/bin/env python3
"""Whole models against ONNX Runtime, in interleaved pairs.

whole_models.py SOD2 MODELS [--only NAME,..] [--pairs 21] [--threads 1] [--repeat 5]

SOD2 is the program, MODELS a folder of folders with model.onnx and a ranges.csv (model, symbol, lo,
hi, step). Each model runs at the middle of its ranges, warm. Of each pair, one engine runs `repeat`
times after one run that does not count, then the other; the medians make the pair's ratio (ONNX
Runtime / sod2: above 1 sod2 is faster). Printed: the median ratio of all pairs with its 95 %
interval by order statistics. Needs numpy, onnx and onnxruntime; run.sh makes the environment.
"""
import argparse, csv, json, os, statistics, subprocess, sys, tempfile, time

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, numpy_helper


def middle(rows):
    binding = {}
    for row in rows:
        if not row["lo"].startswith("="):
            lo, hi, step = int(row["lo"]), int(row["hi"]), int(row["step"])
            binding[row["symbol"]] = lo + (hi - lo) // 2 // step * step
    for row in rows:
        if row["lo"].startswith("="):
            binding[row["symbol"]] = binding[row["lo"][1:]]
    return binding


def make_inputs(folder, model, binding):
    """The model's own test data where its shapes fit, else random values."""
    given = {i.name for i in model.graph.initializer}
    feed, rng = {}, np.random.default_rng(1)
    for k, i in enumerate(x for x in model.graph.input if x.name not in given):
        with open(os.path.join(folder, "test_data_set_0", "input_%d.pb" % k), "rb") as file:
            sample = numpy_helper.to_array(TensorProto.FromString(file.read()))
        shape = []
        for axis, d in enumerate(i.type.tensor_type.shape.dim):
            name = d.dim_param or "%s.%d" % (i.name, axis)
            fixed = d.WhichOneof("value") == "dim_value" and d.dim_value > 0
            shape.append(d.dim_value if fixed else binding.get(name, sample.shape[axis]))
        if list(sample.shape) == shape:
            feed[i.name] = sample
        elif sample.dtype == np.float32:
            feed[i.name] = rng.standard_normal(shape).astype(np.float32)
        else:
            feed[i.name] = np.resize(sample, shape).astype(sample.dtype)
    return feed


def interval(ratios):
    ratios = sorted(ratios)
    n = len(ratios)
    k = max(0, int(n / 2 - 0.98 * n ** 0.5))
    return statistics.median(ratios), ratios[k], ratios[n - 1 - k]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("sod2")
    parser.add_argument("models")
    parser.add_argument("--only", default="")
    parser.add_argument("--pairs", type=int, default=21)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--repeat", type=int, default=5)
    arguments = parser.parse_args()
    ranges = {}
    with open(os.path.join(arguments.models, "ranges.csv")) as file:
        for row in csv.DictReader(file):
            ranges.setdefault(row["model"], []).append(row)
    print("%-24s %10s %10s %22s" % ("model", "sod2 ms", "ORT ms", "ratio [95 % interval]"))
    medians = []
    for name in arguments.only.split(",") if arguments.only else sorted(ranges):
        folder = os.path.join(arguments.models, name)
        path = os.path.join(folder, "model.onnx")
        feed = make_inputs(folder, onnx.load(path), middle(ranges.get(name, [])))
        options = ort.SessionOptions()
        options.intra_op_num_threads = arguments.threads
        options.log_severity_level = 4
        session = ort.InferenceSession(path, options)
        with tempfile.TemporaryDirectory() as scratch:
            command = [arguments.sod2, "run", path, "--json", "--threads", str(arguments.threads),
                       "--repeat", str(arguments.repeat)]
            for k, (input_name, value) in enumerate(feed.items()):
                file = os.path.join(scratch, "%d.npy" % k)
                np.save(file, np.ascontiguousarray(value) if value.ndim else value)
                command += ["--input", "%s=%s" % (input_name, file)]
            ours, theirs, ratios = [], [], []
            for _ in range(arguments.pairs):
                done = subprocess.run(command, capture_output=True, text=True)
                if done.returncode != 0:
                    print("%-24s %s" % (name, done.stderr.strip()[-120:]))
                    break
                a = json.loads(done.stdout)["median_ms"]
                session.run(None, feed)
                times = []
                for _ in range(arguments.repeat):
                    start = time.perf_counter()
                    session.run(None, feed)
                    times.append(1e3 * (time.perf_counter() - start))
                b = statistics.median(times)
                ours.append(a)
                theirs.append(b)
                ratios.append(b / a)
            if not ratios:
                continue
        ratio, low, high = interval(ratios)
        medians.append(ratio)
        print("%-24s %10.3f %10.3f %8.2f [%.2f, %.2f]" %
              (name, statistics.median(ours), statistics.median(theirs), ratio, low, high))
        sys.stdout.flush()
    if medians:
        print("geometric mean %.2f" % statistics.geometric_mean(medians))


if __name__ == "__main__":
    main()
