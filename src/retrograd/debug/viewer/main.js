// What the reader sees now, and what clicks and keys do.

class Viewer {
  constructor(recording) {
    this.recording = recording;
    this.drawing = new Drawing(document.getElementById("back"), document.getElementById("front"), document.getElementById("over"));
    this.source = new SourcePanel(recording, (ids) => this.chooseLine(ids));
    this.details = new DetailsPanel(recording, {
      select: (id, step) => this.select(id, step),
      chooseLine: (ids) => this.chooseLine(ids),
      clear: () => this.clear(),
    });
    this.timeline = new Timeline(recording);
    this.trees = {};
    this.step = recording.steps.length - 1;
    this.selected = null;
    this.found = new Set();
    this.foundBoxes = [];
    this.lineBoxes = null;
    this.group("module");
    this.details.showOverview();
    this.resize();
    this.drawing.begin();
    this.listen();
    this.draw();
    this.goTo(this.step);
  }

  // ---- what the drawing asks ----
  get now() { return this.recording.steps[this.step]; }

  progress(one) {
    const { births, arrivals } = one;
    const run = births.length ? countUpTo(births, this.step) / births.length : one.children ? 0 : 1;
    return [run, arrivals.length ? countUpTo(arrivals, this.step) / arrivals.length : 0];
  }

  isFreed(box) { return box.values.length > 0 && box.values.every((one) => one.freed !== null && one.freed <= this.step); }

  isHeld(box) { return box.saved.length > 0 && box.born <= this.step && (box.released === null || box.released > this.step); }

  isDimmed(one) { return this.lineBoxes !== null && !this.lineBoxes.has(one); }

  // ---- the graph ----
  group(by) {
    this.by = by;
    if (!this.trees[by]) {
      this.trees[by] = new Tree(this.recording, by);
      openTo(this.trees[by], 60);
    }
    this.tree = this.trees[by];
    document.getElementById("by-module").setAttribute("aria-pressed", String(by === "module"));
    document.getElementById("by-line").setAttribute("aria-pressed", String(by === "line"));
    this.layOut();
  }

  layOut() {
    this.drawing.show(layOut(this.tree));
    this.findBoxes();
  }

  boxOf(id) { return visible(this.tree.boxes[id]); }

  findBoxes() {
    this.selectedBox = this.selected === null ? null : this.boxOf(this.selected);
    this.foundBoxes = [...new Set([...this.found].map((id) => this.boxOf(id)))];
    this.lineBoxes = this.chosen ? new Set(this.chosen.map((id) => this.boxOf(id))) : null;
    this.nowBox = this.recording.steps.length ? this.boxOf(this.now.operation) : null;
  }

  // Open or close a group, which stays where it is on the screen.
  toggle(one) {
    const { view } = this.drawing;
    const [x, y] = [one.x * view.scale + view.x, one.y * view.scale + view.y];
    one.open = !one.open;
    this.layOut();
    view.x = x - one.x * view.scale;
    view.y = y - one.y * view.scale;
    this.draw();
  }

  async openAll(open) {
    const busy = document.getElementById("busy");
    busy.hidden = false;
    await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
    for (const one of this.tree.walk()) if (one.children) one.open = open;
    this.layOut();
    this.drawing.fit();
    busy.hidden = true;
    this.draw();
  }

  reveal(id) {
    let changed = false;
    for (let one = this.tree.boxes[id].parent; one; one = one.parent) {
      changed = changed || !one.open;
      one.open = true;
    }
    if (changed) this.layOut();
  }

  show(boxes) {
    const { drawing } = this;
    const { view } = drawing;
    const isInside = (one) => {
      const [left, top] = [one.x * view.scale + view.x, one.y * view.scale + view.y];
      return left > 0 && top > 0 && left + one.width * view.scale < drawing.width && top + one.height * view.scale < drawing.height;
    };
    if (boxes.length === 1) {
      if (view.scale < 0.5) view.scale = 0.9;
      else if (isInside(boxes[0])) return;
      drawing.centre(boxes[0].x + boxes[0].width / 2, boxes[0].y + boxes[0].height / 2);
    } else if (!boxes.every(isInside)) drawing.fit(boxes);
  }

  // ---- choosing ----
  select(id, step = null) {
    this.selected = id;
    this.chosen = null;
    this.reveal(id);
    this.findBoxes();
    this.show([this.selectedBox]);
    const box = this.recording.operations[id];
    this.source.mark("chosen", box.stack.slice(-1));
    this.details.showOperation(box);
    if (step !== null) this.goTo(step);
    this.draw();
  }

  chooseLine(ids) {
    const boxes = [...new Set(ids.flatMap((id) => this.recording.lines[id].operations))].sort((a, b) => a - b);
    this.selected = null;
    this.chosen = boxes;
    if (boxes.length <= 20) boxes.forEach((id) => this.reveal(id));
    this.findBoxes();
    this.show([...this.lineBoxes]);
    this.source.mark("chosen", ids);
    this.details.showLine(ids, boxes);
    this.draw();
  }

  clear() {
    this.selected = null;
    this.chosen = null;
    this.findBoxes();
    this.source.mark("chosen", []);
    this.details.showOverview();
    this.draw();
  }

  // ---- searching ----
  search(text) {
    const words = plain(text).split(/\s+/).filter(Boolean);
    const { recording } = this;
    const matches = words.length ? recording.operations.filter((box) => words.every((word) => recording.words(box).includes(word))) : [];
    const isNamed = (box) => box.name.toLowerCase().includes(words[0]); // these come first; the others have the word in their line, say
    this.found = new Set([...matches.filter(isNamed), ...matches.filter((box) => !isNamed(box))].map((box) => box.id));
    this.current = -1;
    const list = document.getElementById("results");
    list.hidden = !words.length;
    const rows = [...this.found].slice(0, 100).map((id) => {
      const box = recording.operations[id];
      const facts = [box.values.length ? shapeText(box.values[0].shape) : "", recording.modulesOf(box).join(".")].filter(Boolean).join("  ");
      return element("li", { "data-operation": String(id), onmousedown: (event) => { event.preventDefault(); this.select(id); list.hidden = true; } }, box.name, element("small", {}, facts));
    });
    const count = this.found.size;
    list.replaceChildren(element("li", { class: "count" }, count === 1 ? "1 match" : `${count} matches${count > 100 ? ", the first 100" : ""}`), ...rows);
    this.findBoxes();
    this.drawSoon();
  }

  nextFound(by) {
    const ids = [...this.found];
    if (!ids.length) return;
    this.current = (this.current + by + ids.length) % ids.length;
    this.select(ids[this.current]);
    const rows = [...document.querySelectorAll("#results li[data-operation]")];
    rows.forEach((one, at) => one.setAttribute("aria-selected", String(at === this.current)));
    if (rows[this.current]) rows[this.current].scrollIntoView({ block: "nearest" });
  }

  // ---- time ----
  goTo(step) {
    const last = this.recording.steps.length - 1;
    if (last < 0) return;
    this.step = Math.max(0, Math.min(last, step));
    this.nowBox = this.boxOf(this.now.operation);
    this.timeline.show(this.step, (id) => this.select(id));
    document.getElementById("slider").value = String(this.step);
    const stack = this.recording.operations[this.now.operation].stack;
    if (this.selected === null && !this.chosen) this.source.mark("now", this.step < last || this.moved ? stack.slice(-1) : [], this.now.kind);
    this.drawing.drawStep(this);
  }

  slide(step) {
    this.moved = true;
    this.goTo(step);
  }

  play() {
    const button = document.getElementById("play");
    if (this.playing) {
      clearInterval(this.playing);
      this.playing = null;
      button.textContent = "▶";
      return;
    }
    if (this.step >= this.recording.steps.length - 1) this.slide(0);
    const stride = Math.max(1, Math.round(this.recording.steps.length / 600));
    button.textContent = "❚❚";
    this.playing = setInterval(() => {
      this.slide(this.step + stride);
      if (this.step >= this.recording.steps.length - 1) this.play();
    }, 60);
  }

  // ---- drawing ----
  draw() {
    this.drawing.drawBack(this);
    this.drawing.drawFront(this);
  }

  drawSoon() {
    if (this.waiting) return;
    this.waiting = requestAnimationFrame(() => {
      this.waiting = null;
      this.draw();
    });
  }

  resize() {
    this.drawing.resize();
    if (this.recording.steps.length) this.timeline.draw(this.drawing.colour);
  }

  theme(name) {
    document.documentElement.dataset.theme = name;
    this.drawing.readColours();
    this.resize();
    this.draw();
  }

  // ---- events ----
  listen() {
    const on = (id, event, action) => document.getElementById(id).addEventListener(event, action);
    const slider = document.getElementById("slider");
    slider.max = String(Math.max(0, this.recording.steps.length - 1));
    slider.addEventListener("input", () => this.slide(Number(slider.value)));
    on("by-module", "click", () => this.regroup("module"));
    on("by-line", "click", () => this.regroup("line"));
    on("expand", "click", () => this.openAll(true));
    on("collapse", "click", () => this.openAll(false));
    on("fit", "click", () => { this.drawing.fit(); this.draw(); });
    on("theme", "click", () => this.theme(document.documentElement.dataset.theme === "dark" ? "light" : "dark"));
    for (const panel of ["source", "details"]) on(`show-${panel}`, "click", () => this.togglePanel(panel));
    on("previous", "click", () => this.slide(this.step - 1));
    on("next", "click", () => this.slide(this.step + 1));
    on("play", "click", () => this.play());
    on("search", "input", (event) => this.search(event.target.value));
    on("search", "blur", () => { document.getElementById("results").hidden = true; });
    on("search", "focus", (event) => { if (event.target.value) document.getElementById("results").hidden = false; });
    on("search", "keydown", (event) => {
      if (event.key === "Enter" || event.key === "ArrowDown") this.nextFound(event.shiftKey ? -1 : 1);
      else if (event.key === "ArrowUp") this.nextFound(-1);
      else if (event.key === "Escape") { event.target.value = ""; this.search(""); event.target.blur(); }
      else return;
      event.preventDefault();
    });
    document.addEventListener("keydown", (event) => this.key(event));
    this.listenToGraph(document.getElementById("graph"));
    new ResizeObserver(() => { this.resize(); this.draw(); }).observe(document.getElementById("graph"));
  }

  listenToGraph(graph) {
    let from = null;
    const place = (event) => {
      const room = graph.getBoundingClientRect();
      return [event.clientX - room.left, event.clientY - room.top];
    };
    graph.addEventListener("pointerdown", (event) => {
      if (event.button) return;
      const [x, y] = place(event);
      from = { x, y, left: this.drawing.view.x, top: this.drawing.view.y, moved: false };
      graph.setPointerCapture(event.pointerId);
    });
    graph.addEventListener("pointermove", (event) => {
      const [x, y] = place(event);
      if (!from) { this.hover(x, y); return; }
      if (!from.moved && Math.hypot(x - from.x, y - from.y) < 4) return;
      from.moved = true;
      graph.classList.add("dragging");
      this.drawing.view.x = from.left + x - from.x;
      this.drawing.view.y = from.top + y - from.y;
      this.drawSoon();
    });
    graph.addEventListener("pointerup", (event) => {
      graph.classList.remove("dragging");
      if (from && !from.moved) this.click(...place(event));
      from = null;
    });
    graph.addEventListener("pointerleave", () => { document.getElementById("tip").hidden = true; });
    graph.addEventListener("wheel", (event) => {
      event.preventDefault();
      const [x, y] = place(event);
      this.drawing.zoom(Math.exp(-event.deltaY * (event.deltaMode ? 0.05 : event.ctrlKey ? 0.01 : 0.0016)), x, y);
      this.drawSoon();
    }, { passive: false });
  }

  click(x, y) {
    const found = this.drawing.at(x, y);
    if (!found) this.clear();
    else if (found.operation) this.select(found.operation.id);
    else if (!found.open || this.drawing.isHeadOf(found, y)) this.toggle(found);
  }

  hover(x, y) {
    const tip = document.getElementById("tip");
    const found = this.drawing.at(x, y);
    tip.hidden = !found || (found.open && !found.operation);
    document.getElementById("graph").style.cursor = found && (found.operation || !found.open || this.drawing.isHeadOf(found, y)) ? "pointer" : "";
    if (tip.hidden) return;
    const box = found.operation;
    const first = box && box.values[0];
    const facts = box ? [first ? `${shapeText(first.shape)} ${first.dtype}` : "", box.stack.length ? this.recording.textOf(this.recording.lineOf(box)) : ""].filter(Boolean) : [`${counted(found.count, "operation")}; click to open`];
    tip.replaceChildren(box ? box.name : groupTitle(found), ...facts.map((text) => element("small", {}, text)));
    tip.style.left = `${Math.min(x + 14, this.drawing.width - 260)}px`;
    tip.style.top = `${Math.min(y + 16, this.drawing.height - 60)}px`;
  }

  regroup(by) {
    this.group(by);
    this.drawing.begin();
    if (this.selected !== null) { this.reveal(this.selected); this.findBoxes(); this.show([this.selectedBox]); }
    this.draw();
  }

  togglePanel(panel) {
    const hidden = document.body.classList.toggle(`no-${panel}`);
    document.getElementById(`show-${panel}`).setAttribute("aria-pressed", String(!hidden));
  }

  key(event) {
    if (event.target.id === "search" || event.ctrlKey || event.metaKey || event.altKey) return;
    const actions = {
      "/": () => document.getElementById("search").focus(),
      f: () => { this.drawing.fit(); this.draw(); },
      " ": () => this.play(),
      ArrowLeft: () => this.slide(this.step - 1),
      ArrowRight: () => this.slide(this.step + 1),
      Home: () => this.slide(0),
      End: () => this.slide(Infinity),
      Escape: () => this.clear(),
    };
    if (!actions[event.key] || (event.key === " " && event.target.tagName === "BUTTON")) return;
    event.preventDefault();
    actions[event.key]();
  }
}

// How many of sorted numbers are not larger than one.
function countUpTo(numbers, most) {
  let [low, high] = [0, numbers.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (numbers[middle] <= most) low = middle + 1;
    else high = middle;
  }
  return low;
}

function drawLegend() {
  const signs = [["border-top:3px solid var(--forward)", "has run"], ["border-bottom:3px solid var(--backward)", "gradient has arrived"], ["border-style:dashed", "freed"], ["background:var(--parameter);border-color:var(--parameter-line);border-radius:6px", "parameter, input"]];
  const dot = element("i", { style: "width:6px;height:6px;border:0;border-radius:50%;background:var(--backward)" });
  document.getElementById("legend").replaceChildren(...signs.map(([style, text]) => element("span", {}, element("i", { style }), text)), element("span", {}, dot, "saves for backward"));
}

document.documentElement.dataset.theme = window.matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
if (window.innerWidth < 1000) {
  document.body.classList.add("no-source");
  document.getElementById("show-source").setAttribute("aria-pressed", "false");
}
drawLegend();
readData().then((recording) => {
  window.viewer = new Viewer(recording);
  document.body.dataset.ready = "yes";
});
