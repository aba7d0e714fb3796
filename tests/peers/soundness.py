#!/usr/bin/env python3
"""Every tensor's shape as ONNX Runtime executes it, against what `sod2 analyze` says of it.

soundness.py SOD2 MODELS [--bindings N] [--wild N] [--only NAME,NAME]

SOD2 is the program, MODELS a folder of folders with model.onnx and a ranges.csv (model, symbol, lo,
hi, step). For each model and N random bindings, all node outputs of the main graph are executed and
compared: a constant or an expression over input symbols must be equal, other dims are only counted.
`sod2 run` must accept the first few of these bindings. Then N wild bindings, outside the ranges and
with values of their own for dims that should be equal: what `sod2 run` refuses, ONNX Runtime must
refuse, too.
Needs onnx, onnxruntime and numpy (a virtual environment of its own); not part of the test suite.
"""
import argparse, csv, json, math, os, random, re, struct, subprocess, sys, tempfile

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, numpy_helper


def f32(x):
    return struct.unpack("f", struct.pack("f", float(x)))[0]


def broadcast(*dims):
    sizes = {d for d in dims if d != 1}
    if len(sizes) > 1:
        raise ValueError("dims do not broadcast")
    return sizes.pop() if sizes else 1


FUNCTIONS = dict(
    min=min, max=max, f32=f32, f64=float, floor=math.floor, ceil=math.ceil, round=round, trunc=int,
    sqrt=math.sqrt, neg=lambda x: -x, broadcast=broadcast, floordiv=lambda a, b: a // b,
    ceildiv=lambda a, b: -(-a // b), mod=lambda a, b: a % b, alignup=lambda e, k: -(-e // k) * k)


class Expression:
    """The text of a dim, evaluated at a binding; None when it has symbols that are not inputs."""

    def __init__(self, text):
        self.names = {}

        def quoted(match):
            name = match.group(1)
            return self.names.setdefault(name, "q%d" % len(self.names))

        self.code = re.sub(r'"((?:[^"\\]|\\.)*)"', quoted, text)
        self.free = set(re.findall(r"[A-Za-z_]\w*", self.code)) - set(FUNCTIONS)

    def at(self, binding):
        scope = dict(FUNCTIONS)
        scope.update({alias: binding[name] for name, alias in self.names.items() if name in binding})
        scope.update(binding)
        if any(name not in scope for name in self.free):
            return None
        return eval(self.code, {"__builtins__": {}}, scope)


def read_ranges(path):
    ranges = {}
    with open(path) as file:
        for row in csv.DictReader(file):
            ranges.setdefault(row["model"], []).append(row)
    return ranges


def random_binding(rows, rng):
    binding = {}
    for row in rows:
        if row["lo"].startswith("="):
            continue
        binding[row["symbol"]] = rng.randrange(int(row["lo"]), int(row["hi"]) + 1, int(row["step"]))
    for row in rows:
        if row["lo"].startswith("="):
            binding[row["symbol"]] = binding[row["lo"][1:]]
    return binding


def wild_binding(rows, rng):
    """Sizes that nobody promised to be good."""
    hi = {row["symbol"]: row["hi"] for row in rows}
    largest = {s: int(hi[h[1:]] if h.startswith("=") else h) for s, h in hi.items()}
    return {s: rng.choice([1, rng.randint(1, h), rng.randint(1, 2 * h + 2)]) for s, h in largest.items()}


def accepted(sod2, path, binding, steering):
    """Does the program run the model at these sizes? None where it fails for another reason."""
    command = [sod2, "run", path]
    for name, file in steering.items():
        command += ["--input", "%s=%s" % (name, file)]
    for symbol, value in binding.items():
        command += ["--dim", "%s=%d" % (symbol, value)]
    done = subprocess.run(command, capture_output=True, text=True)
    return {0: True, 2: False}.get(done.returncode), done.stderr.strip()


# Integer inputs stay below what the models' tables hold; single values that steer a model are given.
def random_input(name, kind, shape, rng, model):
    if name == "sr":
        return np.array(16000, dtype=np.int64).reshape(shape)
    if kind == TensorProto.FLOAT:
        return rng.standard_normal(shape).astype(np.float32)
    if kind == TensorProto.BOOL:
        return rng.integers(0, 2, shape).astype(bool)
    types = {TensorProto.INT64: np.int64, TensorProto.INT32: np.int32, TensorProto.UINT8: np.uint8}
    high = 9 if model == "gpt2_past" else 2 if "mask" in name or "type" in name else 20
    if model == "transformer_tiny" and "token_type" in name:
        high = 1
    return rng.integers(0, high, shape).astype(types[kind])


def check(sod2, folder, name, rows, count, wild, seed):
    path = os.path.join(folder, name, "model.onnx")
    done = subprocess.run([sod2, "analyze", path, "--json"], capture_output=True, text=True)
    if done.returncode != 0:
        return "analyze failed: " + done.stderr.strip()
    facts = {v["name"]: [Expression(str(d)) for d in v["shape"]]
             for v in json.loads(done.stdout)["values"] if v.get("shape") is not None}
    model = onnx.load(path)
    given = {i.name for i in model.graph.initializer}
    inputs = [i for i in model.graph.input if i.name not in given]
    known = {o.name for o in model.graph.output}
    wanted = [o for n in model.graph.node for o in n.output if o and o in facts and n.op_type != "Constant"]
    for o in dict.fromkeys(wanted):
        if o not in known:
            model.graph.output.append(onnx.ValueInfoProto(name=o))
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    # What decides the branch must be the same in both.
    steering = {}
    if any(i.name == "sr" for i in inputs):
        steering["sr"] = os.path.join(tempfile.mkdtemp(), "sr.npy")
        np.save(steering["sr"], np.array(16000, dtype=np.int64))
    with tempfile.NamedTemporaryFile(suffix=".onnx") as file:
        onnx.save(model, file.name)
        session = ort.InferenceSession(file.name, options)
    names = [o.name for o in session.get_outputs()]
    rng, dims, open_dims = np.random.default_rng(seed), 0, 0
    pick = random.Random(seed)

    def feed_at(binding):
        feed = {}
        if not rows:  # one shape: the model's own data
            data = os.path.join(folder, name, "test_data_set_0", "input_%d.pb")
            for k, i in enumerate(inputs):
                with open(data % k, "rb") as file:
                    feed[i.name] = numpy_helper.to_array(onnx.TensorProto.FromString(file.read()))
            return feed
        for i in inputs:
            shape = []
            for axis, d in enumerate(i.type.tensor_type.shape.dim):
                size = d.dim_value if d.WhichOneof("value") == "dim_value" and d.dim_value > 0 else None
                symbol = d.dim_param or "%s.%d" % (i.name, axis)
                shape.append(size if size is not None else binding[symbol])
            feed[i.name] = random_input(i.name, i.type.tensor_type.elem_type, shape, rng, name)
        return feed

    for k in range(count):
        binding = random_binding(rows, pick)
        feed = feed_at(binding)
        if k < 3 and rows:
            fine, why = accepted(sod2, path, binding, steering)
            if not fine:
                return "sod2 run at %s: %s" % (binding, why)
        try:
            results = session.run(None, feed)
        except Exception as refused:  # random inputs do not suit every model
            return "ONNX Runtime refuses %s: %s" % (binding, str(refused).split("\n")[0][-160:])
        for output, value in zip(names, results):
            if not isinstance(value, np.ndarray):
                continue
            if len(facts[output]) != value.ndim:
                return "%s: rank %d, analysis says %d at %s" % (output, value.ndim, len(facts[output]), binding)
            for axis, expression in enumerate(facts[output]):
                said = expression.at(binding)
                dims += 1
                if said is None:
                    open_dims += 1
                elif said != value.shape[axis]:
                    return "%s axis %d: %d, analysis says %s = %s at %s" % (
                        output, axis, value.shape[axis], expression.code, said, binding)
    refused = 0
    for _ in range(wild if rows else 0):
        binding = wild_binding(rows, pick)
        fine, why = accepted(sod2, path, binding, steering)
        if fine is not False:
            continue
        refused += 1
        try:
            session.run(None, feed_at(binding))
        except Exception:
            continue
        return "sod2 refuses %s, ONNX Runtime does not: %s" % (binding, why)
    return dims, open_dims, refused


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("sod2")
    parser.add_argument("models")
    parser.add_argument("--bindings", type=int, default=50)
    parser.add_argument("--wild", type=int, default=20)
    parser.add_argument("--only", default="")
    arguments = parser.parse_args()
    ranges = read_ranges(os.path.join(arguments.models, "ranges.csv"))
    failed = 0
    for name in sorted(os.listdir(arguments.models)):
        if not os.path.exists(os.path.join(arguments.models, name, "model.onnx")):
            continue
        if arguments.only and name not in arguments.only.split(","):
            continue
        rows = ranges.get(name, [])
        outcome = check(arguments.sod2, arguments.models, name, rows, arguments.bindings if rows else 1,
                        arguments.wild, 7)
        if isinstance(outcome, str):
            failed += 1
            print("%-26s FAILED %s" % (name, outcome))
        else:
            print("%-26s %8d dims equal, %d of them decided while running; %d wild bindings refused by both"
                  % ((name,) + outcome))
        sys.stdout.flush()
    print("%d failed" % failed)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
