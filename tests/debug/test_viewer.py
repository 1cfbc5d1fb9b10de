"""The viewer's page in a real browser: it opens offline, searches, slides, folds, and goes from nodes to lines and back."""

from __future__ import annotations

import math

import pytest

import retrograd as torch
from retrograd import debug, nn
from tests.debug.browser import opened, running_browser


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(4)
        self.wide = nn.Linear(4, 8)
        self.narrow = nn.Linear(8, 4)

    def forward(self, x):
        hidden = torch.relu(self.wide(self.norm(x)))  # the line of relu
        return x + self.narrow(hidden)


def training_step(path):
    torch.manual_seed(0)
    model = nn.Sequential(Block(), Block())
    optimizer = torch.optim.Adam(model.parameters())
    x = torch.randn(6, 4)
    with debug.record(path) as recording:
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
    return recording


@pytest.fixture(scope="module")
def browser():
    with running_browser() as running:
        yield running


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    return training_step(tmp_path_factory.mktemp("viewer") / "step.html").path


@pytest.fixture
def page(browser, file):
    problems = []
    page = opened(browser, file, problems)
    yield page
    page.context.close()
    assert problems == []


def on_screen(page, name):
    """Return where the box of an operation, or of the group around it, stands on the screen."""
    return page.evaluate(
        """(name) => {
            const { drawing, recording } = viewer;
            const one = viewer.boxOf(recording.operations.find((box) => box.name === name).id);
            const room = document.getElementById("graph").getBoundingClientRect();
            const { x, y, scale } = drawing.view;
            return [room.left + (one.x + one.width / 2) * scale + x, room.top + (one.y + one.height / 2) * scale + y];
        }""",
        name,
    )


def pixels(page, canvas="front"):
    return page.evaluate("(id) => document.getElementById(id).toDataURL()", canvas)


def shown(page):
    return page.evaluate("viewer.drawing.layout.shown.length")


def test_it_loads_offline_with_an_overview(page):
    assert page.title() == "test_viewer.py · retrograd"
    details = page.inner_text("#details")
    assert "operations" in details
    assert "No NaN, no infinity" in details
    assert page.locator("#files button").all_inner_texts() == ["test_viewer.py"]
    blank = page.evaluate("document.createElement('canvas').toDataURL()")
    assert pixels(page) != blank
    assert shown(page) > 5


def test_search_finds_and_selects(page):
    page.keyboard.press("/")
    page.keyboard.type("Relu 6x8")
    assert page.inner_text("#results .count") == "4 matches"  # two are linear, on the line of relu
    names = page.locator("#results li[data-operation]").all_inner_texts()
    assert [text.split()[0] for text in names] == ["relu", "relu", "linear", "linear"]
    page.keyboard.press("Enter")
    assert page.inner_text("#details h1") == "relu"
    first = page.evaluate("viewer.selected")
    page.keyboard.press("Enter")
    assert page.evaluate("viewer.selected") != first
    page.keyboard.press("Escape")
    assert not page.is_visible("#results")
    page.fill("#search", "nothing has this name")
    assert page.inner_text("#results .count") == "0 matches"


def test_the_slider_goes_through_forward_backward_and_the_step(page):
    count = page.evaluate("viewer.recording.steps.length")
    phases, pictures = [], set()
    for step in range(count):
        page.evaluate("(at) => { slider.value = at; slider.dispatchEvent(new Event('input')) }", step)
        phases.append(page.inner_text("#now span").split()[0])
        pictures.add((pixels(page), pixels(page, "over")))
        assert f"{step + 1} of {count}" in page.inner_text("#now")
    assert phases == sorted(phases, key=["forward", "backward", "optimizer"].index)
    assert set(phases) == {"forward", "backward", "optimizer"}
    assert len(pictures) > count / 2  # boxes change with the steps
    page.keyboard.press("Home")
    page.keyboard.press("ArrowRight")
    assert page.evaluate("viewer.step") == 1
    live = page.evaluate("viewer.recording.steps.map((one) => one.live)")
    assert max(live) == page.evaluate("viewer.recording.peak")


def test_an_optimizer_says_how_many_parameters_it_has_stepped(page):
    page.evaluate("viewer.select(viewer.recording.operations.findLast((box) => box.kind === 'optimizer').id)")
    (labels,) = page.evaluate("viewer.drawing.layout.shown.map(labelsOf).filter(([name]) => name === 'Adam.step')")
    assert labels == ["Adam.step", "12 parameters"]


def test_playing_ends_at_the_last_step(page):
    page.keyboard.press("Home")
    page.click("#play")
    page.wait_for_function("!viewer.playing", timeout=60_000)
    assert page.evaluate("viewer.step === viewer.recording.steps.length - 1")


def test_groups_fold_and_unfold(page):
    page.click("#collapse")
    page.wait_for_selector("#busy", state="hidden")
    folded = shown(page)
    page.click("#expand")
    page.wait_for_selector("#busy", state="hidden")
    page.wait_for_function("(least) => viewer.drawing.layout.shown.length > least", arg=folded)
    assert shown(page) == page.evaluate("viewer.recording.operations.length")
    page.click("#collapse")
    page.wait_for_function("(count) => viewer.drawing.layout.shown.length === count", arg=folded)
    page.mouse.click(*on_screen(page, "relu"))  # the box of the group around it
    assert shown(page) > folded
    groups = page.evaluate("viewer.drawing.layout.groups.length")
    x, y = page.evaluate(
        """() => {
            const one = viewer.drawing.layout.groups[0];
            const room = document.getElementById("graph").getBoundingClientRect();
            const { x, y, scale } = viewer.drawing.view;
            return [room.left + (one.x + 20) * scale + x, room.top + (one.y + 10) * scale + y];
        }"""
    )
    page.mouse.click(x, y)  # its head
    assert page.evaluate("viewer.drawing.layout.groups.length") < groups


def test_a_node_leads_to_its_line_and_a_line_to_its_nodes(page):
    page.evaluate("viewer.openAll(true)")
    page.mouse.click(*on_screen(page, "relu"))
    details = page.inner_text("#details")
    assert page.inner_text("#details h1") == "relu"
    assert "6\u00d78 float32" in details
    assert "Saved for backward".upper() in details.upper()
    assert page.locator("#details .histogram").count() == 2  # of values and of the gradient
    line = page.inner_text("#code .chosen")
    assert "hidden = torch.relu(self.wide(self.norm(x)))  # the line of relu" in line
    page.click("#code .line:has-text('# the line of relu')")
    assert page.text_content("#details h1") == "hidden = torch.relu(self.wide(self.norm(x)))  # the line of relu"
    marked = page.evaluate("viewer.chosen.map((id) => viewer.recording.operations[id].name)")
    assert sorted(set(marked)) == ["layer_norm", "linear", "relu"]
    assert len(marked) == 6  # in two blocks
    page.click("#details .list a:has-text('layer_norm')")
    assert page.inner_text("#details h1") == "layer_norm"
    page.keyboard.press("Escape")
    assert page.evaluate("viewer.selected") is None


def test_groups_by_line(page):
    page.click("#by-line")
    assert page.evaluate("viewer.tree.by") == "line"
    names = page.evaluate("[...viewer.tree.walk()].filter((one) => one.children).map((one) => one.name)")
    assert any("return x + self.narrow(hidden)" in name for name in names)
    page.click("#by-module")
    names = page.evaluate("[...viewer.tree.walk()].filter((one) => one.children).map((one) => one.kind)")
    assert {"Block", "Linear", "LayerNorm"} <= set(names)


def test_wheel_and_drag_move_the_view(page):
    before = page.evaluate("({ ...viewer.drawing.view })")
    page.mouse.move(700, 400)
    page.mouse.wheel(0, -400)
    page.wait_for_function("(scale) => viewer.drawing.view.scale > scale", arg=before["scale"])
    x = page.evaluate("viewer.drawing.view.x")
    page.mouse.down()
    page.mouse.move(760, 430, steps=4)
    page.mouse.up()
    assert page.evaluate("viewer.drawing.view.x") == pytest.approx(x + 60)
    page.keyboard.press("f")
    page.mouse.move(690, 390)


def test_light_and_dark(browser, file):
    problems = []
    grounds = {}
    for scheme in ("light", "dark"):
        page = opened(browser, file, problems, color_scheme=scheme)
        grounds[scheme] = page.evaluate("getComputedStyle(document.body).backgroundColor")
        page.click("#theme")
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") != grounds[scheme]
        page.context.close()
    assert grounds["light"] != grounds["dark"]
    assert problems == []


def test_a_narrow_window_has_the_panels_below_the_graph(page):
    page.set_viewport_size({"width": 390, "height": 844})
    page.reload()
    page.wait_for_selector("body[data-ready]")
    graph, details, slider = (page.locator(name).bounding_box() for name in ("#graph", "#details", "#slider"))
    assert graph["width"] == details["width"] == 390
    assert graph["y"] + graph["height"] <= details["y"]
    assert graph["height"] > 250
    assert slider["width"] > 200
    assert page.evaluate("document.documentElement.scrollWidth") == 390


def test_a_recording_in_two_stretches_is_unfolded(browser, tmp_path):
    """A page that begins with two closed boxes would show nothing."""
    x = torch.ones(2, requires_grad=True)
    source = "".join(f"x = x.{name}()\n" for name in ["sin", "exp"] * 40)  # lines of their own: nothing gathers them
    with debug.record(tmp_path / "line.html") as recording:
        exec(compile(source, "fifty.py", "exec"), {"x": x})
    problems = []
    page = opened(browser, recording.path, problems)
    assert shown(page) == 81
    page.context.close()
    assert problems == []


def test_cuts_on_purpose_and_kernels_are_told_apart_from_problems(browser, tmp_path):
    x = torch.ones(2, requires_grad=True)
    with debug.record(tmp_path / "cut.html") as recording:
        (x * x.exp().detach()).sum().backward()
    recording.trace.compiled, recording.trace.read, recording.trace.making = 2, 1, 3_000_000
    recording.save(tmp_path / "cut.html")
    problems = []
    page = opened(browser, recording.path, problems)
    words = page.inner_text("#details")
    assert "3 kernels (2 compiled, 1 read from the cache) took another 3.0 ms" in words
    assert "no gradient that vanishes, is cut or missing" in words
    page.click("#details .finding.meant")
    assert page.inner_text("#details h1") == "detach"
    page.context.close()
    assert problems == []


def test_findings_lead_to_their_operations(browser, tmp_path):
    x = torch.tensor([1.0, -1.0], requires_grad=True)
    with debug.record(tmp_path / "nan.html") as recording:
        (x.log() * 2).sum().backward()
    problems = []
    page = opened(browser, recording.path, problems)
    page.click("#details .finding:has-text('NaN first appears in log')")
    assert page.inner_text("#details h1") == "log"
    assert "NaN" in page.inner_text("#details table")
    page.context.close()
    assert problems == []


def test_an_error_leads_to_what_ran_before(browser, tmp_path):
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(3, 2))
    failed = debug.record(tmp_path / "failed.html")
    with pytest.raises(RuntimeError) as caught, failed:
        model(torch.ones(1, 2).exp())
    problems = []
    page = opened(browser, failed.path, problems)
    words = page.inner_text("#details .finding.error")
    assert f"The program was left by RuntimeError: {caught.value}".split() == words[: words.index("\nat ")].split()
    assert "at test_viewer.py:" in words
    page.click("#details .finding.error li >> text=exp")
    assert page.inner_text("#details h1") == "exp"
    page.context.close()
    assert problems == []


def test_parameters_that_are_never_used(browser, tmp_path):
    class Half(Block):
        def forward(self, x):
            return self.norm(x)

    with debug.record(tmp_path / "unused.html") as recording:
        Half()(torch.ones(1, 4))
    problems = []
    page = opened(browser, recording.path, problems)
    assert "Half.wide.weight" in page.inner_text("#details .finding.unused")
    page.context.close()
    assert problems == []


def test_strange_recordings_open(browser, tmp_path):
    """Of nothing, of an error alone, of numbers that JSON cannot say, of text that HTML would read."""
    recordings = []
    with debug.record(tmp_path / "empty.html") as recording:
        pass
    recordings.append(recording)
    with debug.record(tmp_path / "error.html") as recording, pytest.raises(RuntimeError):
        torch.ones(2) @ torch.ones(3)
    recordings.append(recording)
    text = "</script><script>window.stolen = 1</script>"
    with debug.record(tmp_path / "text.html") as recording:
        exec(compile(f"torch.full((2,), float('inf')).exp()  # {text}", text, "exec"), {"torch": torch})
        torch.tensor(math.nan)
        torch.empty(0)
        torch.ones(1).bool()
    recording.trace.title = text
    recording.save(recording.path)
    recordings.append(recording)
    recordings.append(debug.view(torch.ones(2, requires_grad=True), path=tmp_path / "leaf.html"))
    problems = []
    for one in recordings:
        page = opened(browser, one.path, problems)
        assert page.evaluate("window.stolen") is None
        for key in ("Home", "ArrowRight", "End", "f", "Escape"):
            page.keyboard.press(key)
        page.click("#by-line")
        page.click("#expand")
        page.context.close()
    assert problems == []


def test_a_notebook_shows_it_in_a_frame(browser, tmp_path):
    x = torch.ones(2, requires_grad=True)
    cell = tmp_path / "cell.html"
    cell.write_text(f"<!doctype html><body data-ready>{debug.view(x.exp().sum(), path=None)._repr_html_()}")
    problems = []
    page = opened(browser, cell, problems)
    frame = page.frame_locator("iframe")
    frame.locator("body[data-ready=yes]").wait_for(timeout=60_000)
    assert "operations" in frame.locator("#details").inner_text()
    page.context.close()
    assert problems == []


def test_ten_thousand_operations(browser, tmp_path):
    weight = torch.eye(2, requires_grad=True)
    with debug.record(tmp_path / "long.html") as recording:
        h = torch.ones(2, 2)
        for _ in range(3333):
            h = (h @ weight).tanh() + 1
        h.sum().backward()
    assert len(recording.trace.operations) > 10_000
    assert recording.path.stat().st_size < 10 << 20
    problems = []
    page = opened(browser, recording.path, problems)
    assert shown(page) < 100  # it opens folded
    page.click("#expand")
    page.wait_for_function("viewer.drawing.layout.shown.length === viewer.recording.operations.length", timeout=60_000)
    page.evaluate("viewer.slide(12000)")
    # Boxes that changed are drawn over the old ones: the picture is what it would be, were all drawn anew.
    difference = page.evaluate(
        """() => {
            const { front, width, height } = viewer.drawing;
            const copy = Object.assign(document.createElement("canvas"), { width, height }).getContext("2d", { willReadFrequently: true });
            const read = () => {
                copy.clearRect(0, 0, width, height);
                copy.drawImage(front, 0, 0);
                return copy.getImageData(0, 0, width, height).data;
            };
            for (const step of [12500, 13000, 11000, 11001]) viewer.slide(step);
            const changed = read();
            viewer.draw();
            const anew = read();
            return changed.reduce((sum, one, at) => sum + Math.abs(one - anew[at]), 0) / changed.length;
        }"""
    )
    assert difference < 1  # of 255
    page.fill("#search", "TanhBackward")
    assert page.inner_text("#results .count") == "3333 matches, the first 100"
    page.keyboard.press("Enter")
    assert page.inner_text("#details h1") == "tanh"
    page.context.close()
    assert problems == []
