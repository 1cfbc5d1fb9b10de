// Drawing the graph on three canvases: groups and lines behind, which change with the view; boxes in front, of which a step changes a few;
// and over them what is selected, found or running.

// Colours of boxes from afar: not of the chosen line, a problem, gradient here in part or whole, run in part or whole, a leaf, to come.
const SPOTS = [["faint", 0.18], ["problem", 0.9], ["backward", 0.45], ["backward", 0.75], ["forward", 0.4], ["forward", 0.65], ["parameter", 1], ["node", 1]];

const FAR = 0.3; // scale below which boxes have no words
const MOST_CHANGES = 1500; // steps after which all boxes are drawn anew

class Drawing {
  constructor(back, front, over) {
    this.back = back;
    this.front = front;
    this.over = over;
    this.view = { x: 0, y: 0, scale: 1 };
    this.readColours();
  }

  readColours() {
    const style = getComputedStyle(document.documentElement);
    this.colour = {};
    for (const name of ["canvas", "ink", "muted", "faint", "node", "node-line", "group", "group-line", "edge", "forward", "backward", "optimizer", "problem", "parameter", "parameter-line", "mark", "select"]) {
      this.colour[name] = style.getPropertyValue(`--${name}`).trim();
    }
    this.sans = style.getPropertyValue("--sans").trim();
    this.mono = style.getPropertyValue("--mono").trim();
  }

  show(layout) { this.layout = layout; }

  resize() {
    const { width, height } = this.back.getBoundingClientRect();
    this.ratio = window.devicePixelRatio || 1;
    this.width = width;
    this.height = height;
    for (const canvas of [this.back, this.front, this.over]) {
      canvas.width = Math.round(width * this.ratio);
      canvas.height = Math.round(height * this.ratio);
    }
  }

  fit(boxes = null) {
    let [left, top, right, bottom] = [0, 0, this.layout.width, this.layout.height];
    if (boxes && boxes.length) {
      left = Math.min(...boxes.map((one) => one.x));
      top = Math.min(...boxes.map((one) => one.y));
      right = Math.max(...boxes.map((one) => one.x + one.width));
      bottom = Math.max(...boxes.map((one) => one.y + one.height));
    }
    const scale = Math.min((this.width - 40) / (right - left), (this.height - 60) / (bottom - top), boxes ? 1 : 1.15);
    this.view.scale = Math.max(scale, 0.004);
    this.centre((left + right) / 2, (top + bottom) / 2);
  }

  // Show the beginning of a graph that is too tall to read as a whole.
  begin() {
    this.fit();
    const legible = 0.62;
    if (this.view.scale >= legible || this.layout.shown.length > 400) return;
    const scale = Math.min(0.85, (this.width - 40) / this.layout.width);
    if (scale <= this.view.scale) return;
    this.view.scale = scale;
    this.view.x = this.width / 2 - (this.layout.width / 2) * scale;
    this.view.y = 10;
  }

  centre(x, y) {
    this.view.x = this.width / 2 - x * this.view.scale;
    this.view.y = this.height / 2 - y * this.view.scale;
  }

  zoom(factor, x, y) {
    const { view } = this;
    const scale = Math.min(4, Math.max(0.004, view.scale * factor));
    view.x = x - ((x - view.x) * scale) / view.scale;
    view.y = y - ((y - view.y) * scale) / view.scale;
    view.scale = scale;
  }

  start(canvas) {
    const context = canvas.getContext("2d");
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.clearRect(0, 0, canvas.width, canvas.height);
    return this.continue(canvas);
  }

  continue(canvas) {
    const context = canvas.getContext("2d");
    const { x, y, scale } = this.view;
    context.setTransform(scale * this.ratio, 0, 0, scale * this.ratio, x * this.ratio, y * this.ratio);
    this.window = { left: -x / scale, top: -y / scale, right: (this.width - x) / scale, bottom: (this.height - y) / scale };
    return context;
  }

  isSeen(left, top, right, bottom) {
    const { window } = this;
    return right >= window.left && left <= window.right && bottom >= window.top && top <= window.bottom;
  }

  // ---- groups and lines ----
  drawBack(state) {
    const context = this.start(this.back);
    const { colour, layout, view } = this;
    context.lineWidth = Math.max(1, 0.7 / view.scale);
    for (const one of layout.groups) {
      if (!this.isSeen(one.x, one.y, one.x + one.width, one.y + one.height)) continue;
      context.fillStyle = colour.group;
      context.strokeStyle = colour["group-line"];
      context.globalAlpha = one.isPart ? 0.55 : 1;
      rounded(context, one, 9);
      context.fill();
      context.stroke();
      context.globalAlpha = 1;
      if (view.scale > 0.22) {
        const [title] = labelsOf(one);
        context.fillStyle = colour.muted;
        context.font = `600 11.5px ${this.sans}`;
        context.fillText(`▾ ${title}`, one.x + 10, one.y + 16);
        const start = one.x + 22 + textWidth(`▾ ${title}`, 11.5) * 1.12;
        if (one.kind && start + textWidth(one.kind, 11) < one.x + one.width - 6 && one.kind !== one.name) {
          context.fillStyle = colour.faint;
          context.font = `11px ${this.sans}`;
          context.fillText(one.kind, start, one.y + 16);
        }
      }
    }
    this.drawRoutes(context, state);
  }

  drawRoutes(context, state) {
    const { colour, layout, view } = this;
    const straight = view.scale < 0.12;
    const near = new Path2D();
    const chosen = new Path2D();
    let some = false;
    for (const one of layout.routes) {
      const { from, to, points } = one;
      if (!this.isSeen(Math.min(from.x, to.x), Math.min(from.y, to.y), Math.max(from.x + from.width, to.x + to.width), Math.max(from.y + from.height, to.y + to.height))) continue;
      const marked = state.selected && (from === state.selectedBox || to === state.selectedBox);
      some = some || marked;
      trace(marked ? chosen : near, points, straight, one.across);
    }
    context.strokeStyle = colour.edge;
    context.lineWidth = straight ? Math.max(0.8, 0.5 / view.scale) : 1.15;
    context.globalAlpha = straight ? 0.5 : 0.9;
    context.stroke(near);
    context.globalAlpha = 1;
    if (some) {
      context.strokeStyle = colour.select;
      context.lineWidth = Math.max(1.8, 1.2 / view.scale);
      context.stroke(chosen);
    }
  }

  // ---- boxes ----
  drawFront(state) {
    const context = this.start(this.front);
    if (this.view.scale < FAR) this.drawSmall(context, state, this.layout.shown);
    else this.drawLarge(context, state);
    this.drawnStep = state.step;
    this.drawOver(state);
  }

  // Go from the step that was drawn last to another: from afar, boxes that look the same stay.
  drawStep(state) {
    const [first, last] = [Math.min(this.drawnStep, state.step), Math.max(this.drawnStep, state.step)];
    if (this.view.scale >= FAR || last - first > MOST_CHANGES) {
      this.drawFront(state);
      return;
    }
    const changed = new Set();
    for (let at = first; at <= last; at++) for (const id of state.recording.changes[at]) changed.add(state.boxOf(id));
    const context = this.continue(this.front);
    for (const one of changed) context.clearRect(one.x, one.y, one.width, one.height);
    this.drawSmall(context, state, changed);
    this.drawnStep = state.step;
    this.drawOver(state);
  }

  // From afar a box is a spot of colour; those of one colour are drawn together.
  drawSmall(context, state, some) {
    const { colour, view } = this;
    const spots = new Map();
    const gap = Math.min(1, 0.3 / view.scale);
    for (const one of some) {
      if (!this.isSeen(one.x, one.y, one.x + one.width, one.y + one.height)) continue;
      const key = this.spot(one, state);
      let boxes = spots.get(key);
      if (!boxes) spots.set(key, (boxes = []));
      boxes.push(one);
    }
    for (const [key, boxes] of spots) {
      const [name, alpha] = SPOTS[key];
      context.globalAlpha = alpha;
      context.fillStyle = colour[name];
      for (const one of boxes) context.fillRect(one.x + gap, one.y + gap, one.width - 2 * gap, one.height - 2 * gap);
      if (name !== "node" && name !== "parameter") continue;
      const line = Math.min(2, 0.6 / view.scale);
      context.lineWidth = line;
      context.strokeStyle = colour[`${name}-line`];
      for (const one of boxes) context.strokeRect(one.x + gap + line / 2, one.y + gap + line / 2, one.width - 2 * gap - line, one.height - 2 * gap - line);
    }
    context.globalAlpha = 1;
  }

  spot(one, state) {
    if (state.isDimmed(one)) return 0;
    if (one.problems) return 1;
    const [run, arrived] = state.progress(one);
    if (arrived > 0) return arrived === 1 ? 3 : 2;
    if (run > 0 && (one.children || !one.operation.isLeaf)) return run === 1 ? 5 : 4;
    return one.operation && one.operation.isLeaf ? 6 : 7;
  }

  drawLarge(context, state) {
    for (const one of this.layout.shown) {
      if (this.isSeen(one.x - 4, one.y - 4, one.x + one.width + 4, one.y + one.height + 4)) this.drawBox(context, one, state);
    }
  }

  drawBox(context, one, state) {
    const { colour } = this;
    const box = one.operation;
    const isLeaf = box !== null && box.isLeaf;
    const [run, arrived] = state.progress(one);
    const dimmed = state.isDimmed(one);
    context.globalAlpha = dimmed ? 0.22 : run > 0 || isLeaf ? 1 : 0.45;
    context.fillStyle = isLeaf ? colour.parameter : colour.node;
    context.strokeStyle = isLeaf ? colour["parameter-line"] : colour["node-line"];
    context.lineWidth = 1;
    if (box && state.isFreed(box)) context.setLineDash([3, 3]);
    if (!box) { // a second edge behind: there is more inside
      rounded(context, { x: one.x + 3, y: one.y + 3, width: one.width, height: one.height }, 7);
      context.fill();
      context.stroke();
    }
    rounded(context, one, isLeaf ? one.height / 2 : 6);
    context.fill();
    context.stroke();
    context.setLineDash([]);
    context.save();
    rounded(context, one, isLeaf ? one.height / 2 : 6);
    context.clip();
    context.fillStyle = colour[box && colour[box.kind] ? box.kind : "forward"];
    context.globalAlpha *= 0.85;
    if (!isLeaf) context.fillRect(one.x, one.y, one.width * run, 3);
    context.fillStyle = colour.backward;
    context.fillRect(one.x + one.width * (1 - arrived), one.y + one.height - 3, one.width * arrived, 3);
    context.restore();
    this.drawWords(context, one, dimmed, run > 0 || isLeaf);
    if (box && state.isHeld(box)) {
      context.fillStyle = colour.backward;
      context.beginPath();
      context.arc(one.x + one.width - 8, one.y + 10, 2.6, 0, 7);
      context.fill();
    }
    if (one.problems) {
      context.globalAlpha = 1;
      context.strokeStyle = colour.problem;
      context.lineWidth = 1.6;
      rounded(context, one, isLeaf ? one.height / 2 : 6);
      context.stroke();
    }
    context.globalAlpha = 1;
  }

  drawWords(context, one, dimmed, active) {
    const { colour } = this;
    const [title, facts] = labelsOf(one);
    const middle = one.x + one.width / 2;
    const top = one.y + one.height / 2;
    context.textAlign = "center";
    context.globalAlpha = dimmed ? 0.25 : active ? 1 : 0.6;
    context.fillStyle = colour.ink;
    context.font = one.operation ? `12.5px ${this.sans}` : `600 12.5px ${this.sans}`;
    context.fillText(title, middle, top - (facts ? 1.5 : -4));
    context.fillStyle = colour.muted;
    context.font = `10.5px ${this.sans}`;
    context.fillText(facts, middle, top + 12);
    context.textAlign = "left";
  }

  // What is selected or found has an outline; what runs now has a halo.
  drawOver(state) {
    const context = this.start(this.over);
    const { colour, view } = this;
    const outline = (one, name, width, distance) => {
      const least = 3.2 / view.scale;
      const room = { x: one.x - distance, y: one.y - distance, width: Math.max(one.width + 2 * distance, least), height: Math.max(one.height + 2 * distance, least) };
      context.strokeStyle = colour[name];
      context.lineWidth = Math.max(width, width / view.scale / 1.6);
      rounded(context, room, 8);
      context.stroke();
    };
    if (state.found.size) {
      context.globalAlpha = 0.9;
      for (const one of state.foundBoxes) if (this.isSeen(one.x, one.y, one.x + one.width, one.y + one.height)) outline(one, "optimizer", 1.8, 3);
      context.globalAlpha = 1;
    }
    if (state.lineBoxes) for (const one of state.lineBoxes) if (this.isSeen(one.x, one.y, one.x + one.width, one.y + one.height)) outline(one, "select", 1.6, 2);
    if (state.nowBox) {
      const name = state.now.kind;
      context.globalAlpha = 0.28;
      outline(state.nowBox, name, 7, 4);
      context.globalAlpha = 1;
      outline(state.nowBox, name, 2, 2);
    }
    if (state.selectedBox) outline(state.selectedBox, "select", 2.4, 3);
  }

  // ---- what is where ----
  at(x, y) {
    const { view } = this;
    const [px, py] = [(x - view.x) / view.scale, (y - view.y) / view.scale];
    const inside = (one) => px >= one.x && px <= one.x + one.width && py >= one.y && py <= one.y + one.height;
    const found = this.layout.shown.find(inside);
    if (found) return found;
    const around = this.layout.groups.filter(inside);
    return around.length ? around[around.length - 1] : null;
  }

  isHeadOf(one, y) { return (y - this.view.y) / this.view.scale <= one.y + SPACE.head; }
}

function rounded(context, { x, y, width, height }, radius) {
  context.beginPath();
  context.roundRect(x, y, width, height, Math.min(radius, height / 2));
}

function trace(path, points, straight, across) {
  path.moveTo(...points[0]);
  if (straight) {
    path.lineTo(...points[points.length - 1]);
    return;
  }
  if (points.length === 2) {
    const [[x, y], [u, v]] = points;
    if (across) {
      const reach = Math.max(10, Math.abs(u - x) / 2);
      path.bezierCurveTo(x + reach, y, u - reach, v, u, v);
      return;
    }
    const reach = Math.max(10, Math.abs(v - y) / 2);
    path.bezierCurveTo(x, y + reach, u, v - reach, u, v);
    return;
  }
  for (let at = 1; at < points.length - 1; at++) {
    const [x, y] = points[at];
    const [u, v] = points[at + 1];
    const last = at === points.length - 2;
    path.quadraticCurveTo(x, y, last ? u : (x + u) / 2, last ? v : (y + v) / 2);
  }
}
