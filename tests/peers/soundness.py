#!/usr/bin/env python3
"""Every tensor's shape as ONNX Runtime executes it, against what `sod2 analyze` says of it.

soundness.py SOD2 MODELS|twins [--bindings N] [--wild N] [--only NAME,NAME] [--venv DIR]

SOD2 is the program, MODELS a folder of folders with model.onnx and a ranges.csv (model, symbol, lo,
hi, step); `twins` are the example models, exported eight times narrower. For each model and N random
bindings (five for a twin), all tensors are executed, those of sub-graphs too, and their shapes
compared: a dim over input symbols must be equal; one that the analysis made up must lie in its
bounds, and outside of loops all dims that name it must agree on its value. `sod2 run` must accept
the first few of these bindings. Then N wild bindings, outside the ranges and with values of their
own for dims that should be equal: what `sod2 run` refuses, ONNX Runtime must refuse, too.
Needs onnx, onnxruntime and numpy; makes a virtual environment in DIR where there are none.
"""
import argparse, csv, json, math, os, random, re, struct, subprocess, sys, tempfile

import environment
import twins


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


# Integer inputs stay below what the models' tables hold; single values that steer a model are given.
def random_input(name, kind, shape, rng, model):
    import numpy as np
    if name == "sr":
        return np.array(16000, dtype=np.int64).reshape(shape)
    if kind == "tensor(float)":
        return rng.standard_normal(shape).astype(np.float32)
    if kind == "tensor(bool)":
        return rng.integers(0, 2, shape).astype(bool)
    types = {"tensor(int64)": np.int64, "tensor(int32)": np.int32, "tensor(uint8)": np.uint8}
    high = 9 if model == "gpt2_past" else 2 if "mask" in name or "type" in name else 20
    if model == "transformer_tiny" and "token_type" in name:
        high = 1
    return rng.integers(0, high, shape).astype(types[kind])


def expose_subgraphs(graph, prefix, facts, found):
    """Makes the shapes of sub-graph tensors visible outside.

    Each becomes an int64 tensor of one row, the dims: -1 where the arm did not run, the largest of
    all trips for a body. Returns the names of these rows in `graph` with what they show."""
    from onnx import AttributeProto, TensorProto, helper
    rows = []

    def constant(nodes, shape, data):
        name = "row_constant_%d" % next(found)
        nodes.append(helper.make_node("Constant", [], [name],
                                      value=helper.make_tensor("", TensorProto.INT64, shape, data)))
        return name

    def row_output(name):
        return helper.make_tensor_value_info(name, TensorProto.INT64, None)

    for node in list(graph.node):
        bodies = [(a.name, a.g) for a in node.attribute if a.type == AttributeProto.GRAPH]
        inner = {}
        for attribute, g in bodies:
            scope = prefix + node.name + "/" + attribute + "/"
            inner[attribute] = expose_subgraphs(g, scope, facts, found)
            for n in list(g.node):
                for o in n.output:
                    shape = facts.get(scope + o)
                    if not shape:
                        continue
                    seen, row = ("row_%d" % next(found) for _ in range(2))
                    g.node.append(helper.make_node("Shape", [o], [seen]))
                    g.node.append(helper.make_node(
                        "Reshape", [seen, constant(g.node, [2], [1, len(shape)])], [row]))
                    inner[attribute].append((row, scope + o, len(shape), False))
        if node.op_type == "If":
            branches = dict(bodies)
            for attribute, other in (("then_branch", "else_branch"), ("else_branch", "then_branch")):
                for row, label, rank, looped in inner[attribute]:
                    branches[attribute].output.append(row_output(row))
                    branches[other].output.append(
                        row_output(constant(branches[other].node, [1, rank], [-1] * rank)))
                    result = "row_%d" % next(found)
                    node.output.append(result)
                    rows.append((result, label, rank, looped))
        elif node.op_type in ("Loop", "Scan"):
            body = bodies[0][1]
            for row, label, rank, _ in inner[bodies[0][0]]:
                body.output.append(row_output(row))
                stacked, flat, padded, result = ("row_%d" % next(found) for _ in range(4))
                node.output.append(stacked)
                for a in node.attribute:
                    if a.name in ("scan_output_directions", "scan_output_axes"):
                        a.ints.append(0)
                new = [helper.make_node("Reshape", [stacked, constant(graph.node, [2], [-1, rank])], [flat]),
                       helper.make_node("Concat", [flat, constant(graph.node, [1, rank], [-1] * rank)],
                                        [padded], axis=0),
                       helper.make_node("ReduceMax", [padded], [result], axes=[0], keepdims=1)]
                graph.node.extend(new)
                rows.append((result, label, rank, True))
    return rows


class subject:
    """A model, what the analysis says of it, and how to execute all of its tensors."""

    def __init__(self, sod2, path):
        import onnx
        import onnxruntime as ort
        self.sod2, self.path = sod2, path
        done = subprocess.run([sod2, "analyze", path, "--json"], capture_output=True, text=True)
        if done.returncode != 0:
            raise RuntimeError("analyze failed: " + done.stderr.strip())
        report = json.loads(done.stdout)
        self.facts = {v["name"]: [Expression(str(d)) for d in v["shape"]]
                      for v in report["values"] if v.get("shape") is not None}
        self.bounds = {s["name"]: (s["lower"], s["upper"]) for s in report["symbols"]}
        model = onnx.load(path)
        graph = model.graph
        given = {i.name for i in graph.initializer}
        self.inputs = [i for i in graph.input if i.name not in given]
        self.scoped = {row: (label, looped) for row, label, _, looped in
                       expose_subgraphs(graph, "", self.facts, iter(range(10 ** 9)))}
        known = {o.name for o in graph.output}
        wanted = [o for n in graph.node for o in n.output
                  if o in self.scoped or (o and o in self.facts and n.op_type != "Constant")]
        graph.output.extend(onnx.ValueInfoProto(name=o) for o in dict.fromkeys(wanted) if o not in known)
        options = ort.SessionOptions()
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
        options.log_severity_level = 4
        with tempfile.NamedTemporaryFile(suffix=".onnx") as file:
            onnx.save(model, file.name)
            self.session = ort.InferenceSession(file.name, options)
        self.names = [o.name for o in self.session.get_outputs()]
        self.dims = self.open_dims = self.nested = 0

    def shapes(self, feed):
        """Name, shape and whether it is of a loop's body, of each tensor that was executed."""
        import numpy as np
        for output, value in zip(self.names, self.session.run(None, feed)):
            if output in self.scoped:
                if value.max() >= 0:  # it ran
                    self.nested += value.size
                    label, looped = self.scoped[output]
                    yield label, tuple(int(d) for d in value.ravel()), looped
            elif isinstance(value, np.ndarray):
                yield output, value.shape, False

    def disagreement(self, feed, binding):
        """The first tensor whose shape is not what the analysis says, or None."""
        seen = list(self.shapes(feed))
        made_up = {}
        for name, shape, looped in seen:
            for size, expression in zip(shape, self.facts[name]):
                symbol = expression.code
                if symbol in self.bounds and not looped:
                    made_up.setdefault(symbol, size)
        for name, shape, looped in seen:
            if len(self.facts[name]) != len(shape):
                return "%s: rank %d, analysis says %d" % (name, len(shape), len(self.facts[name]))
            for axis, (size, expression) in enumerate(zip(shape, self.facts[name])):
                self.dims += 1
                said = expression.at(binding)
                if said is None:
                    self.open_dims += 1
                    low, high = self.bounds.get(expression.code, (0, size))
                    if not low <= size <= high:
                        return "%s axis %d: %d, analysis says %d..%d" % (name, axis, size, low, high)
                    said = None if looped else expression.at({**binding, **made_up})
                if said is not None and said != size:
                    return "%s axis %d: %d, analysis says %s = %s" % (name, axis, size, expression.code, said)
        return None

    def accepted(self, binding, steering):
        """Does the program run the model at these sizes? None where it fails for another reason."""
        command = [self.sod2, "run", self.path]
        for name, file in steering.items():
            command += ["--input", "%s=%s" % (name, file)]
        for symbol, value in binding.items():
            command += ["--dim", "%s=%d" % (symbol, value)]
        done = subprocess.run(command, capture_output=True, text=True)
        return {0: True, 2: False}.get(done.returncode), done.stderr.strip()


def check_model(sod2, folder, name, rows, count, wild):
    import numpy as np
    from onnx import TensorProto, numpy_helper
    model = subject(sod2, os.path.join(folder, name, "model.onnx"))
    # What decides the branch must be the same in both.
    steering = {}
    if any(i.name == "sr" for i in model.inputs):
        steering["sr"] = os.path.join(tempfile.mkdtemp(), "sr.npy")
        np.save(steering["sr"], np.array(16000, dtype=np.int64))
    rng, pick = np.random.default_rng(7), random.Random(7)
    kinds = {i.name: i.type for i in model.session.get_inputs()}

    def feed_at(binding):
        feed = {}
        if not rows:  # one shape: the model's own data
            data = os.path.join(folder, name, "test_data_set_0", "input_%d.pb")
            for k, i in enumerate(model.inputs):
                with open(data % k, "rb") as file:
                    feed[i.name] = numpy_helper.to_array(TensorProto.FromString(file.read()))
            return feed
        for i in model.inputs:
            shape = []
            for axis, d in enumerate(i.type.tensor_type.shape.dim):
                size = d.dim_value if d.WhichOneof("value") == "dim_value" and d.dim_value > 0 else None
                symbol = d.dim_param or "%s.%d" % (i.name, axis)
                shape.append(size if size is not None else binding[symbol])
            feed[i.name] = random_input(i.name, kinds[i.name], shape, rng, name)
        return feed

    for k in range(count):
        binding = random_binding(rows, pick)
        feed = feed_at(binding)
        if k < 3 and rows:
            fine, why = model.accepted(binding, steering)
            if not fine:
                raise RuntimeError("sod2 run at %s: %s" % (binding, why))
        wrong = model.disagreement(feed, binding)
        if wrong:
            raise RuntimeError("%s at %s" % (wrong, binding))
    refused = 0
    for _ in range(wild if rows else 0):
        binding = wild_binding(rows, pick)
        fine, why = model.accepted(binding, steering)
        if fine is not False:
            continue
        refused += 1
        try:
            model.session.run(None, feed_at(binding))
        except Exception:
            continue
        raise RuntimeError("sod2 refuses %s, ONNX Runtime does not: %s" % (binding, why))
    return model, refused


def check_twin(sod2, name):
    import numpy as np
    rng = np.random.default_rng(7)
    with tempfile.TemporaryDirectory() as folder:
        model = subject(sod2, twins.export(sod2, name, folder))
        for k, sizes in enumerate(twins.SIZES[name]):
            wrong = model.disagreement(twins.feed_at(model.session, sizes, rng, k), sizes)
            if wrong:
                raise RuntimeError("%s at %s" % (wrong, sizes))
    return model, 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("sod2")
    parser.add_argument("models", help="a folder, or `twins`")
    parser.add_argument("--bindings", type=int, default=50)
    parser.add_argument("--wild", type=int, default=20)
    parser.add_argument("--only", default="")
    parser.add_argument("--venv", default="venv")
    o = parser.parse_args()
    environment.ensure(o.venv)
    if o.models == "twins":
        checks = {name: lambda name=name: check_twin(o.sod2, name) for name in twins.SIZES}
    else:
        ranges = read_ranges(os.path.join(o.models, "ranges.csv"))
        checks = {name: lambda name=name: check_model(o.sod2, o.models, name, ranges.get(name, []),
                                                      o.bindings if name in ranges else 1, o.wild)
                  for name in sorted(os.listdir(o.models))
                  if os.path.exists(os.path.join(o.models, name, "model.onnx"))}
    failed = 0
    for name, check in checks.items():
        if o.only and name not in o.only.split(","):
            continue
        try:
            model, refused = check()
            print("%-26s %8d dims equal, %d of them in sub-graphs, %d decided while running; %d wild "
                  "bindings refused by both" % (name, model.dims, model.nested, model.open_dims, refused))
        except Exception as error:
            failed += 1
            print("%-26s FAILED %s" % (name, str(error).split("\n")[0][:400]))
        sys.stdout.flush()
    print("%d failed" % failed)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
