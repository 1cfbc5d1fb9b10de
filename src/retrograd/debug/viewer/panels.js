// The panels around the graph: the program, what is selected, the timeline.

function element(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, given] of Object.entries(properties)) {
    if (name === "class") made.className = given;
    else if (name.startsWith("on")) made.addEventListener(name.slice(2), given);
    else if (name === "style") made.style.cssText = given;
    else made.setAttribute(name, given);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

// ---- the program ----
class SourcePanel {
  constructor(recording, choose) {
    this.recording = recording;
    this.choose = choose;
    this.code = document.getElementById("code");
    this.tabs = document.getElementById("files");
    this.byFile = recording.files.map(() => new Map());
    for (const line of recording.lines) {
      const lines = this.byFile[line.file];
      if (!lines.has(line.line)) lines.set(line.line, []);
      lines.get(line.line).push(line);
    }
    this.times = recording.lines.map((line) => line.operations.reduce((sum, id) => sum + recording.operations[id].took + recording.operations[id].tookBack, 0));
    this.longest = Math.max(1, ...this.times);
    this.tabs.replaceChildren(...recording.files.map((file, at) => element("button", { title: file.path, onclick: () => this.open(at) }, file.name.split("/").pop())));
    this.open(this.busiest());
  }

  busiest() {
    // The file in which most operations are called, as the innermost line of the program.
    const counts = this.recording.files.map(() => 0);
    for (const box of this.recording.operations) {
      const line = this.recording.lineOf(box);
      if (line) counts[line.file] += 1;
    }
    return counts.length ? counts.indexOf(Math.max(...counts)) : -1;
  }

  open(at) {
    if (at === this.file) return;
    this.file = at;
    this.rows = [];
    [...this.tabs.children].forEach((tab, i) => tab.setAttribute("aria-pressed", String(i === at)));
    if (at < 0 || !this.recording.files[at].lines.length) {
      this.code.replaceChildren(element("p", { class: "empty" }, at < 0 ? "No line of the program is known." : "The text of this file is not known."));
      return;
    }
    const lines = this.byFile[at];
    this.rows = this.recording.files[at].lines.map((text, i) => {
      const called = lines.get(i + 1);
      const row = element("div", { class: called ? "line runs" : "line" }, element("span", {}, String(i + 1)), this.heat(called), element("span", {}, text || " "));
      if (called) {
        const count = new Set(called.flatMap((line) => line.operations)).size;
        row.title = `${count} operation${count === 1 ? "" : "s"}, ${timeText(Math.max(...called.map((line) => this.times[line.id])))}`;
        row.addEventListener("click", () => this.choose(called.map((line) => line.id)));
      }
      return row;
    });
    this.code.replaceChildren(...this.rows);
    const first = this.rows.find((one) => one.classList.contains("runs"));
    this.code.scrollTop = first ? Math.max(0, first.offsetTop - this.code.offsetTop - 60) : 0;
  }

  heat(called) {
    const bar = element("span", { class: "heat" });
    if (called) {
      const share = Math.max(...called.map((line) => this.times[line.id])) / this.longest;
      bar.append(element("i", { style: `width:${Math.max(4, 100 * Math.sqrt(share))}%` }));
    }
    return bar;
  }

  mark(kind, ids, colour) {
    this.code.querySelectorAll(`.${kind}`).forEach((row) => row.classList.remove(kind));
    if (!ids.length) return;
    const line = this.recording.lines[ids[0]];
    this.open(line.file);
    const row = this.rows[line.line - 1];
    if (!row) return;
    row.classList.add(kind);
    if (colour) row.style.setProperty("--now", `var(--${colour})`);
    const { offsetTop } = row;
    const { scrollTop, clientHeight } = this.code;
    const top = offsetTop - this.code.offsetTop;
    if (top < scrollTop + 10 || top > scrollTop + clientHeight - 40) this.code.scrollTop = top - clientHeight / 2;
  }
}

// ---- what is selected ----
class DetailsPanel {
  constructor(recording, actions) {
    this.recording = recording;
    this.actions = actions;
    this.root = document.getElementById("details");
  }

  link(id, text) {
    return element("a", { onclick: () => this.actions.select(id) }, text || this.recording.operations[id].name);
  }

  close() { return element("button", { class: "close", title: "Close (Esc)", "aria-label": "Close", onclick: () => this.actions.clear() }, "×"); }

  findings(list) {
    return list.map((one) => {
      const properties = { class: `finding ${one.kind}` };
      if (one.operation !== null) Object.assign(properties, { role: "button", tabindex: "0", onclick: () => this.actions.select(one.operation, one.step) });
      const [text, ...rest] = one.text.split("\n");
      const links = one.before.map(([id, name]) => element("li", { onclick: (event) => event.stopPropagation() }, this.link(id, name)));
      const last = links.length ? [element("p", {}, "Last before it:"), element("ol", {}, ...links)] : [];
      return element("div", properties, text, ...rest.map((line) => element("p", {}, line)), ...last);
    });
  }

  showOverview() {
    const { recording } = this;
    const { operations, steps } = recording;
    const forward = steps.filter((one) => one.kind === "forward");
    const took = forward.reduce((sum, one) => sum + one.took, 0);
    const runs = new Set(steps.filter((one) => one.kind === "backward").map((one) => one.run));
    const facts = [
      ((count) => [count, count === 1 ? "operation" : "operations"])(operations.filter((one) => !one.isLeaf).length),
      [recording.leaves.filter((one) => one.tracked).length, "parameters and leaves"],
      ...(took > 0 || !runs.size ? [[timeText(took), "forward"]] : []), // a graph that was there does not know it
      [timeText(steps.filter((one) => one.kind === "backward").reduce((sum, one) => sum + one.took, 0)), runs.size < 2 ? "backward" : `in ${runs.size} backwards`],
      [bytesText(recording.peak), "of tensors at the peak"],
      [bytesText(operations.reduce((sum, one) => sum + savedBytes(one), 0)), "saved for backward"],
    ];
    this.root.replaceChildren(
      element("h1", {}, recording.title),
      element("p", { class: "sub" }, `Python ${recording.python}`),
      element("div", { class: "facts" }, ...facts.map(([number, what]) => element("div", {}, element("b", {}, String(number)), element("span", {}, what)))),
      ...this.kernelsNote(),
      ...recording.notes.map((note) => element("p", { class: "sub" }, note)),
      element("h2", {}, "To look at"),
      ...(recording.findings.length ? this.findings(recording.findings) : [element("p", { class: "good" }, recording.good)]),
      ...(recording.meant.length ? [element("h2", {}, "Gradients cut on purpose"), ...this.findings(recording.meant)] : []),
      ...this.ranking("Saved for backward", savedBytes, bytesText, (one) => one.saved.length),
      ...this.ranking("Time", (one) => one.took + one.tookBack, timeText, (one) => !one.isLeaf),
    );
    this.root.scrollTop = 0;
  }

  kernelsNote() {
    const { kernels } = this.recording;
    const count = kernels.compiled + kernels.read;
    if (!count) return [];
    return [element("p", { class: "sub" }, `${counted(count, "kernel")} (${kernelsText(kernels)}) took another ${timeText(kernels.making)}, once in a process.`)];
  }

  ranking(title, key, text, belongs) {
    const most = this.recording.operations.filter((one) => belongs(one) && key(one) > 0).sort((a, b) => key(b) - key(a)).slice(0, 7);
    if (!most.length) return [];
    const rows = most.map((one) => {
      const modules = this.recording.modulesOf(one).slice(-2).join(".");
      return element("li", {}, element("span", {}, this.link(one.id), modules ? element("span", { class: "sub" }, ` ${modules}`) : null), element("span", {}, text(key(one))));
    });
    return [element("h2", {}, title), element("ol", { class: "list" }, ...rows)];
  }

  showLine(ids, operations) {
    const { recording } = this;
    const line = recording.lines[ids[0]];
    const boxes = operations.map((id) => recording.operations[id]);
    const sum = (key) => boxes.reduce((total, one) => total + key(one), 0);
    const rows = boxes.slice(0, 200).map((one) => element("li", {}, element("span", {}, this.link(one.id)), element("span", {}, one.values.length ? shapeText(one.values[0].shape) : "")));
    this.root.replaceChildren(
      this.close(),
      element("h1", { class: "mono" }, recording.textOf(line)),
      element("p", { class: "sub" }, `${recording.files[line.file].name}:${line.line}, in ${line.function}`),
      element("div", { class: "facts" },
        element("div", {}, element("b", {}, String(boxes.length)), element("span", {}, boxes.length === 1 ? "operation" : "operations")),
        element("div", {}, element("b", {}, bytesText(sum(savedBytes))), element("span", {}, "saved for backward")),
        element("div", {}, element("b", {}, timeText(sum((one) => one.took))), element("span", {}, "forward")),
        element("div", {}, element("b", {}, timeText(sum((one) => one.tookBack))), element("span", {}, "backward"))),
      ...this.findings(boxes.flatMap((one) => one.findings)),
      element("h2", {}, "Operations"),
      element("ol", { class: "list" }, ...rows),
    );
    this.root.scrollTop = 0;
  }

  showOperation(box) {
    const { recording } = this;
    const modules = recording.modulesOf(box);
    const parts = [
      this.close(),
      element("h1", {}, box.name),
      element("p", { class: "sub" }, [box.kind === "operation" ? "" : box.kind, modules.join(" › "), box.node].filter(Boolean).join(" · ")),
      ...this.findings(box.findings),
    ];
    if (box.remark && !box.findings.length) parts.push(element("p", { class: `finding ${box.isMeant ? "meant" : "cut"}` }, box.remark));
    if (box.stack.length) {
      const lines = [...box.stack].reverse().slice(0, 8).map((id) => {
        const line = recording.lines[id];
        return element("li", {}, element("a", { title: `${recording.files[line.file].path}:${line.line}`, onclick: () => this.actions.chooseLine([id]) },
          `${recording.files[line.file].name.split("/").pop()}:${line.line}`), element("span", { class: "sub" }, `  ${recording.textOf(line)}`));
      });
      parts.push(element("h2", {}, "Called from"), element("ol", { class: "stack" }, ...lines));
    }
    box.values.forEach((one, at) => parts.push(...this.value(box, one, at)));
    if (box.gradient) parts.push(element("h2", {}, "Gradient"), ...numbers(box.gradient, "gradient"));
    else if (box.leaf !== null && recording.leaves[box.leaf].tracked) parts.push(element("h2", {}, "Gradient"), element("p", { class: "sub" }, "None has arrived."));
    if (!box.isLeaf) {
      const times = [["forward", box.took], ["backward", box.tookBack]].filter(([, took]) => took);
      if (box.kernels.making) times.push(["kernels", box.kernels.making]);
      if (times.length) parts.push(element("h2", {}, "Time"), element("table", {}, ...times.map(([name, took]) => row(name, timeText(took)))));
      if (box.kernels.making) parts.push(element("p", { class: "sub" }, `Kernels: ${kernelsText(box.kernels)}.`));
    }
    parts.push(...this.saved(box), ...this.neighbours("From", box.inputs), ...this.neighbours("To", box.users));
    this.root.replaceChildren(...parts);
    this.root.scrollTop = 0;
  }

  value(box, one, at) {
    const count = this.recording.steps.length;
    const heading = box.values.length > 1 ? `Output ${at + 1}` : box.isLeaf ? "Value" : "Output";
    const parts = [element("h2", {}, heading), element("p", {}, element("code", {}, `${shapeText(one.shape)} ${one.dtype}`), element("span", { class: "sub" }, `  ${bytesText(one.bytes)}`))];
    if (one.numbers) parts.push(...numbers(one.numbers, ""));
    if (!box.isLeaf && box.born >= 0) {
      const end = one.freed === null ? count : one.freed;
      parts.push(span("", box.born, end, count), element("p", { class: "sub" }, one.freed === null ? `In memory since event ${box.born + 1}, to the end` : `In memory from event ${box.born + 1} to ${Math.max(end, box.born + 1)}`));
    }
    return parts;
  }

  saved(box) {
    if (!box.saved.length) return [];
    const count = this.recording.steps.length;
    const end = box.released === null ? count : box.released;
    const rows = box.saved.map((one) => element("li", {}, element("span", {}, one.source === null || one.source === box.id ? one.name : this.link(one.source, one.name), element("span", { class: "sub" }, `  ${shapeText(one.shape)} ${one.dtype}`)), element("span", {}, one.isFirst ? bytesText(one.bytes) : "shared")));
    const start = Math.max(box.born, 0);
    return [
      element("h2", {}, "Saved for backward"), element("ol", { class: "list" }, ...rows), span("saved", start, end, count),
      element("p", { class: "sub" }, box.released === null ? `Held since event ${start + 1}, to the end` : `Held from event ${start + 1} to ${end + 1}: ${counted(end - start, "event")}`),
    ];
  }

  neighbours(title, ids) {
    if (!ids.length) return [];
    const rows = [...new Set(ids)].slice(0, 40).map((id) => {
      const one = this.recording.operations[id];
      return element("li", {}, element("span", {}, this.link(id)), element("span", {}, one.values.length ? shapeText(one.values[0].shape) : ""));
    });
    return [element("h2", {}, title), element("ol", { class: "list" }, ...rows)];
  }
}

// What is saved several times counts once, and what belongs to a leaf not at all, as in `debug.saved_bytes`.
const savedBytes = (box) => box.saved.reduce((sum, one) => sum + (one.isFirst ? one.bytes : 0), 0);

const row = (name, text) => element("tr", {}, element("th", {}, name), element("td", { class: "number" }, text));

function span(kind, start, end, count) {
  const percent = (at) => (100 * at) / Math.max(count, 1);
  return element("div", { class: `span ${kind}` }, element("i", { style: `left:${percent(start)}%;width:${percent(Math.max(end - start, 0))}%` }));
}

function numbers(one, kind) {
  const parts = [];
  if (one.bars.length) {
    const bars = one.bars.map((height) => element("i", { style: `height:${height}%` }));
    parts.push(element("div", { class: `histogram ${kind}` }, ...bars), element("div", { class: "ends" }, element("span", {}, numberText(one.least)), element("span", {}, numberText(one.greatest))));
  }
  const rows = [["mean", numberText(one.mean)], ["standard deviation", numberText(one.deviation)]];
  if (one.zeros) rows.push(["zeros", `${(100 * one.zeros).toFixed(one.zeros < 0.1 ? 1 : 0)} %`]);
  if (one.nans) rows.push(["NaN", String(one.nans)]);
  if (one.infinities) rows.push(["Inf", String(one.infinities)]);
  parts.push(element("table", {}, ...rows.map(([name, text]) => row(name, text))));
  return parts;
}

// ---- the timeline ----
class Timeline {
  constructor(recording) {
    this.recording = recording;
    this.canvas = document.getElementById("memory");
    this.head = document.getElementById("head");
    this.label = document.getElementById("now");
  }

  draw(colour) {
    const { canvas, recording } = this;
    const { width, height } = canvas.getBoundingClientRect();
    const ratio = window.devicePixelRatio || 1;
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    const context = canvas.getContext("2d");
    context.scale(ratio, ratio);
    const { steps, peak } = recording;
    const wide = width / Math.max(steps.length, 1);
    const floor = height - 5;
    for (let x = 0; x < width; x++) { // the most of the steps that share a pixel
      const first = Math.min(Math.floor(x / wide), steps.length - 1);
      const last = Math.max(first, Math.min(Math.floor((x + 1) / wide) - 1, steps.length - 1));
      let live = 0;
      for (let at = first; at <= last; at++) live = Math.max(live, steps[at].live);
      context.fillStyle = colour[steps[first].kind];
      context.globalAlpha = 0.3;
      const tall = peak ? (live / peak) * (floor - 6) : 0;
      context.fillRect(x, floor - tall, 1, tall);
      context.globalAlpha = 0.95;
      if (peak) context.fillRect(x, floor - tall - 0.75, 1, 1.5);
      context.fillRect(x, height - 3, 1, 3);
    }
    context.globalAlpha = 1;
    context.fillStyle = colour.muted;
    context.font = "10.5px system-ui, sans-serif";
    if (peak) context.fillText(`memory, peak ${bytesText(peak)}`, 2, 10);
  }

  show(at, select) {
    const { recording } = this;
    const step = recording.steps[at];
    this.head.style.left = `${(100 * (at + 0.5)) / recording.steps.length}%`;
    const box = recording.operations[step.operation];
    const title = document.createElement("div");
    const name = element("b", {}, element("a", { title: "Select", onclick: () => select(box.id) }, box.name));
    const phase = step.kind === "backward" ? `backward${step.run > 1 ? ` ${step.run}` : ""}` : step.run ? `forward, in backward ${step.run}` : step.kind;
    title.append(element("span", { style: `color:var(--${step.kind})` }, phase), " ", name);
    const facts = element("div", { class: "sub" }, `${at + 1} of ${recording.steps.length} · ${timeText(step.took)} · ${bytesText(step.live)} live`);
    const modules = element("div", { class: "sub" }, recording.modulesOf(box).join(" › ") || " ");
    this.label.replaceChildren(title, facts, modules);
  }
}
