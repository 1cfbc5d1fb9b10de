"use strict";
// What was recorded, with names for the columns of `_page.py`, and the trees of groups that the graph can be shown as.

const MOST_USERS = { leaf: 24, other: 60 }; // to which lines are drawn: those of a weight of a long loop would hide the graph
const LEAST_STRETCH = 4; // operations of one line that become a group
const FEW_PARTS = 4; // that stand one below the other; more are columns
const LARGEST_GROUP = 42; // children that are laid out together; more are shown in groups of this many

const value = ([shape, dtype, bytes, numbers, freed]) => ({ shape, dtype, bytes, numbers: statistics(numbers), freed });

function statistics(columns) {
  if (!columns) return null;
  const [least, greatest, mean, deviation, nans, infinities, zeros, bars] = columns;
  return { least, greatest, mean, deviation, nans, infinities, zeros, bars };
}

class Recording {
  constructor(data) {
    this.title = data.title;
    this.python = data.python;
    this.notes = data.notes;
    this.good = data.good;
    this.files = data.files.map(([path, name, text]) => ({ path, name, lines: text ? text.replace(/\n$/, "").split("\n") : [] }));
    this.lines = data.lines.map(([file, line, name], id) => ({ id, file, line, function: name, operations: [] }));
    this.stacks = data.stacks;
    this.groups = data.groups.map(([name, module, parent]) => ({ name, module, parent }));
    this.steps = data.steps.map(([kind, operation, run, began, took, live, node, compiled, read, making]) =>
      ({ kind: { f: "forward", b: "backward", o: "optimizer" }[kind], operation, run, began, took, live, node, kernels: { compiled, read, making } }));
    this.leaves = data.leaves.map(([name, held, tracked, gradient, steps, remark]) =>
      ({ name, value: value(held), tracked, gradient: statistics(gradient), steps, remark }));
    this.operations = data.operations.map((columns, id) => {
      const [name, kind, group, stack, inputs, values, gradient, node, saved, released, remark, cut, isMeant, leaf, stepped] = columns;
      return {
        id, name, kind, group, stack: stack < 0 ? [] : this.stacks[stack], inputs, values: values.map(value), gradient: statistics(gradient), node,
        saved: saved.map(([name, shape, dtype, bytes, source, isFirst]) => ({ name, shape, dtype, bytes, source, isFirst })),
        released, remark, cut: Boolean(cut), isMeant: Boolean(isMeant), leaf, stepped, isLeaf: kind === "parameter" || kind === "input", users: [], born: -1, arrives: Infinity,
        took: 0, tookBack: 0, kernels: { compiled: 0, read: 0, making: 0 }, findings: [],
      };
    });
    const finding = ([kind, text, operation, step, before]) => ({ kind, text, operation, step, before });
    this.findings = data.findings.map(finding);
    this.meant = data.meant.map(finding);
    const [compiled, read, making] = data.kernels;
    this.kernels = { compiled, read, making };
    this.connect();
  }

  connect() {
    const { operations, steps } = this;
    for (const box of operations) for (const input of box.inputs) operations[input].users.push(box.id);
    steps.forEach((step, at) => {
      const box = operations[step.operation];
      for (const name of ["compiled", "read", "making"]) box.kernels[name] += step.kernels[name];
      if (step.kind === "backward") {
        box.tookBack += step.took;
        if (box.kind === "backward") box.born = at;
        else box.arrives = Math.min(box.arrives, at);
      } else {
        box.born = at;
        box.took += step.took;
      }
    });
    for (const box of operations) {
      if (box.leaf !== null) {
        const leaf = this.leaves[box.leaf];
        box.gradient = leaf.gradient;
        box.arrives = leaf.steps.length ? leaf.steps[0] : Infinity;
        box.remark = box.remark || leaf.remark;
      }
      for (const line of new Set(box.stack)) this.lines[line].operations.push(box.id);
    }
    this.changes = steps.map(() => []); // the boxes that look different after each step
    for (const box of operations) for (const at of [box.born, box.arrives]) if (at >= 0 && at < steps.length) this.changes[at].push(box.id);
    for (const finding of this.findings) if (finding.operation !== null) operations[finding.operation].findings.push(finding);
    this.peak = steps.reduce((most, step) => Math.max(most, step.live), 0);
  }

  lineOf(box) { return box.stack.length ? this.lines[box.stack[box.stack.length - 1]] : null; }

  // The lines that led to a box; a leaf stands with what uses it first.
  stackOf(box) { return box.stack.length || !box.users.length ? box.stack : this.operations[box.users[0]].stack; }

  textOf(line) { return (this.files[line.file].lines[line.line - 1] || "").trim(); }

  modulesOf(box) {
    const names = [];
    for (let at = box.group; at >= 0; at = this.groups[at].parent) names.unshift(this.groups[at].name);
    return names;
  }

  // What a search looks through; made when it is first needed.
  words(box) {
    if (box.words === undefined) {
      const line = this.lineOf(box);
      const shapes = box.values.map((one) => `${shapeText(one.shape)} ${one.dtype}`);
      const where = line ? [this.textOf(line), `${this.files[line.file].name}:${line.line}`] : [];
      box.words = plain([box.name, box.node, box.kind, this.modulesOf(box).join("."), ...shapes, ...where, ...box.findings.map((one) => one.kind)].join(" "));
    }
    return box.words;
  }
}

// A tree of groups. A leaf of it stands for an operation.
class Tree {
  constructor(recording, by) {
    this.recording = recording;
    this.by = by;
    this.root = group("root", null, "", "");
    this.boxes = new Array(recording.operations.length);
    if (by === "module") this.growByModule();
    else this.growByLine();
    while (this.root.children.length === 1 && this.root.children[0].children) this.root = this.root.children[0];
    this.root.parent = null;
    this.simplify(this.root);
    this.split(this.root);
    this.settle(this.root, 0);
    this.connect();
  }

  add(parent, box) {
    const leaf = { id: `operation ${box.id}`, parent, operation: box, children: null, name: this.nameOf(box) };
    parent.children.push(leaf);
    this.boxes[box.id] = leaf;
  }

  // A parameter is called as in its module, if it stands in that.
  nameOf(box) {
    if (!box.isLeaf) return box.name;
    const home = `${this.recording.modulesOf(box).slice(1).join(".")}.`;
    if (this.by === "module" && box.name.startsWith(home)) return box.name.slice(home.length);
    return box.name.split(".").slice(-2).join(".");
  }

  growByModule() {
    const { groups, operations } = this.recording;
    const made = groups.map((one, at) => group(`module ${at}`, null, one.name, one.module));
    groups.forEach((one, at) => {
      made[at].parent = one.parent < 0 ? this.root : made[one.parent];
    });
    const placed = new Set();
    const place = (one) => { // a call stands where its first operation does
      if (one === this.root || placed.has(one)) return;
      placed.add(one);
      place(one.parent);
      one.parent.children.push(one);
    };
    for (const box of operations) {
      const parent = box.group < 0 ? this.root : made[box.group];
      place(parent);
      this.add(parent, box);
    }
    this.root.children = this.gathered(this.root, this.root.children, 0);
  }

  // Operations outside of modules that one line has called, itself or by what it calls, are a group. Where a line also calls
  // modules, what they stand between is gathered by the lines below it.
  gathered(parent, items, depth) {
    const stackOf = (one) => (one.children ? stackOf(one.children[0]) : this.recording.stackOf(one.operation));
    const deepest = Math.max(0, ...items.map((one) => stackOf(one).length));
    if (depth >= deepest) return items;
    const result = [];
    for (let at = 0; at < items.length;) {
      const line = stackOf(items[at])[depth];
      let end = at + 1;
      while (line !== undefined && end < items.length && stackOf(items[end])[depth] === line) end++;
      const run = items.slice(at, end);
      if (line === undefined) result.push(...run);
      else if (run.some((one) => one.children || ["backward", "optimizer"].includes(one.operation.kind))) result.push(...this.gathered(parent, run, depth + 1));
      else if (run.length < LEAST_STRETCH) result.push(...run);
      else {
        const one = this.lineGroup(line, parent, `stretch ${depth} ${run[0].id}`);
        one.isStretch = true;
        run.forEach((child) => { child.parent = one; });
        one.children = this.gathered(one, run, depth + 1);
        result.push(one);
      }
      at = end;
    }
    return result;
  }

  lineGroup(id, parent, key) {
    const line = this.recording.lines[id];
    const text = this.recording.textOf(line) || `line ${line.line}`;
    return group(key, parent, text, `${this.recording.files[line.file].name.split("/").pop()}:${line.line}`);
  }

  growByLine() {
    const { recording, root } = this;
    const made = new Map();
    for (const box of recording.operations) {
      let parent = root;
      let path = "line";
      for (const id of recording.stackOf(box)) {
        path += ` ${id}`;
        if (!made.has(path)) {
          made.set(path, this.lineGroup(id, parent, path));
          parent.children.push(made.get(path));
        }
        parent = made.get(path);
      }
      this.add(parent, box);
    }
  }

  // A group of one thing is that thing.
  simplify(one) {
    if (!one.children) return;
    for (let at = 0; at < one.children.length; at++) {
      let child = one.children[at];
      while (child.children && child.children.length === 1) {
        const only = child.children[0];
        if (only.children) only.name = `${child.name} › ${only.name}`;
        only.parent = one;
        child = only;
      }
      one.children[at] = child;
      this.simplify(child);
    }
  }

  // Large groups become groups of groups, each a stretch of the execution.
  split(one) {
    if (!one.children) return;
    one.children.forEach((child) => this.split(child));
    let down = true;
    while (one.children.length > LARGEST_GROUP) {
      const parts = [];
      const size = Math.min(LARGEST_GROUP, Math.max(8, Math.ceil(one.children.length / Math.ceil(one.children.length / LARGEST_GROUP))));
      for (let at = 0; at < one.children.length; at += size) {
        const part = group(`${one.id} part ${at} ${size} ${down}`, one, "", "");
        part.children = one.children.slice(at, at + size);
        part.isPart = true;
        part.across = !down;
        part.children.forEach((child) => { child.parent = part; });
        parts.push(part);
      }
      one.children = parts;
      one.across = down && parts.length > FEW_PARTS;
      down = !down;
    }
  }

  // Sum up what collapsed groups show, and number the calls that have one name.
  settle(one, depth) {
    one.depth = depth;
    if (!one.children) {
      const box = one.operation;
      one.count = 1;
      one.births = !box.isLeaf && box.born >= 0 ? [box.born] : [];
      one.arrivals = box.arrives < Infinity ? [box.arrives] : [];
      one.problems = box.findings.length;
      return;
    }
    one.edges = new Map();
    const calls = new Map();
    for (const child of one.children) {
      this.settle(child, depth + 1);
      if (child.children && !child.isPart) {
        calls.set(child.name, (calls.get(child.name) || 0) + 1);
        child.call = calls.get(child.name);
      }
    }
    for (const child of one.children) if (child.call && calls.get(child.name) > 1) child.ofSeveral = true;
    one.count = one.children.reduce((sum, child) => sum + child.count, 0);
    one.problems = one.children.reduce((sum, child) => sum + child.problems, 0);
    one.births = Float64Array.from(one.children.flatMap((child) => [...child.births])).sort();
    one.arrivals = Float64Array.from(one.children.flatMap((child) => [...child.arrivals])).sort();
    if (one.isPart) one.name = `events ${one.births.length ? `${one.births[0] + 1}–${one.births[one.births.length - 1] + 1}` : ""}`;
  }

  // An edge belongs to the group in which its two ends stand apart.
  connect() {
    for (const box of this.recording.operations) {
      for (const input of box.inputs) {
        const source = this.recording.operations[input];
        const most = source.isLeaf ? MOST_USERS.leaf : MOST_USERS.other;
        if (source.users.length > most && source.users[0] !== box.id) continue;
        let from = this.boxes[input];
        let to = this.boxes[box.id];
        while (from.depth > to.depth) from = from.parent;
        while (to.depth > from.depth) to = to.parent;
        while (from.parent !== to.parent) { from = from.parent; to = to.parent; }
        if (from === to) continue;
        const key = `${from.id}\n${to.id}`;
        const { edges } = from.parent;
        if (!edges.has(key)) edges.set(key, { from, to, pairs: [] });
        edges.get(key).pairs.push([this.boxes[input], this.boxes[box.id]]);
      }
    }
  }

  *walk(one = this.root) {
    yield one;
    if (one.children) for (const child of one.children) yield* this.walk(child);
  }
}

function group(id, parent, name, kind) {
  return { id, parent, name, kind, children: [], open: false, operation: null };
}

// ---- words ----
const shapeText = (shape) => (shape.length ? shape.join("×") : "scalar");

const plain = (text) => text.toLowerCase().replaceAll("×", "x"); // as people type it

function counted(number, word) { return `${number} ${word}${number === 1 ? "" : "s"}`; }

function kernelsText({ compiled, read }) {
  return [compiled ? `${compiled} compiled` : "", read ? `${read} read from the cache` : ""].filter(Boolean).join(", ");
}

function bytesText(count) {
  for (const unit of ["B", "KiB", "MiB"]) {
    if (count < 1024) return unit === "B" ? `${count} B` : `${count.toFixed(1)} ${unit}`;
    count /= 1024;
  }
  return `${count.toFixed(2)} GiB`;
}

function timeText(microseconds) {
  if (microseconds < 1000) return `${microseconds < 10 ? microseconds.toFixed(1) : Math.round(microseconds)} µs`;
  return microseconds < 1e6 ? `${(microseconds / 1000).toFixed(1)} ms` : `${(microseconds / 1e6).toFixed(2)} s`;
}

function numberText(number) {
  if (number === null || number === undefined) return "–";
  if (number === 0) return "0";
  const size = Math.abs(number);
  return size >= 1e-3 && size < 1e5 ? String(+number.toPrecision(4)) : number.toExponential(2);
}

async function readData() {
  const packed = Uint8Array.from(atob(document.getElementById("data").textContent.trim()), (c) => c.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Recording(JSON.parse(await new Response(stream).text()));
}
