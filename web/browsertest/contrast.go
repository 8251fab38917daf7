package browsertest

import (
	"github.com/chromedp/chromedp"
)

// CheckContrast holds that all text stands out from what is behind it, as WCAG's level AA
// asks: from the backgrounds of the elements around it. axe's own rule leaves texts over
// gradients undecided.
func (t *Tab) CheckContrast() {
	t.tb.Helper()
	for _, faint := range t.faint() {
		t.tb.Errorf("%s: too little contrast: %s", t.Address(), faint)
	}
}

func (t *Tab) faint() []string {
	t.tb.Helper()
	return read(t, "measure the contrast", chromedp.Evaluate[[]string](faintTexts))
}

// faintTexts names each element whose text has less contrast than 4.5, or 3 where it is
// large. Controls that can't be used are exempt. A background image is looked through.
const faintTexts = `(() => {
	const pen = new OffscreenCanvas(1, 1).getContext("2d", {willReadFrequently: true}), colors = new Map();
	const color = (name) => { // as red, green, blue and alpha, whatever its notation
		if (!colors.has(name)) {
			pen.clearRect(0, 0, 1, 1);
			pen.fillStyle = name;
			pen.fillRect(0, 0, 1, 1);
			const [r, g, b, a] = pen.getImageData(0, 0, 1, 1).data;
			colors.set(name, [r, g, b, a / 255]);
		}
		return colors.get(name);
	};
	const over = (top, alpha, below) => below.map((b, i) => top[i] * alpha + b * (1 - alpha));
	const behind = new Map(); // what is seen through an element, with its own background
	const background = (e) => {
		if (!e) return [255, 255, 255];
		if (!behind.has(e)) {
			const own = color(getComputedStyle(e).backgroundColor);
			behind.set(e, own[3] === 1 ? own.slice(0, 3) : over(own, own[3], background(e.parentElement)));
		}
		return behind.get(e);
	};
	const luminance = (c) => [0.2126, 0.7152, 0.0722].reduce((sum, share, i) => {
		const s = c[i] / 255;
		return sum + share * (s <= 0.04045 ? s / 12.92 : ((s + 0.055) / 1.055) ** 2.4);
	}, 0);
	const contrast = (a, b) => {
		const [light, dark] = [luminance(a), luminance(b)].sort((x, y) => y - x);
		return (light + 0.05) / (dark + 0.05);
	};
	const off = ":disabled, [aria-disabled=true]";
	const exempt = (e) => e.closest(off) || e.closest("label")?.control?.matches(off);
	const texts = new Set(document.querySelectorAll("input:not([type=hidden], [type=checkbox], [type=radio]), select, textarea"));
	const nodes = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
	while (nodes.nextNode()) if (nodes.currentNode.data.trim()) texts.add(nodes.currentNode.parentElement);
	const found = [];
	for (const e of texts) {
		if (!e.checkVisibility({contentVisibilityAuto: true, visibilityProperty: true}) || exempt(e)) continue;
		const box = e.getBoundingClientRect();
		if (box.width <= 1 || box.height <= 1) continue; // for screen readers only
		const style = getComputedStyle(e), size = parseFloat(style.fontSize);
		let text = color(e instanceof SVGElement ? style.fill : style.color), ground = background(e);
		text = over(text, text[3], ground);
		for (let faded = e; faded; faded = faded.parentElement) {
			const opacity = parseFloat(getComputedStyle(faded).opacity);
			if (opacity < 1) [text, ground] = [text, ground].map((c) => over(c, opacity, background(faded.parentElement)));
		}
		const large = size >= 24 || (size >= 18.66 && parseInt(style.fontWeight) >= 700);
		const has = contrast(text, ground);
		if (has < (large ? 3 : 4.5)) {
			found.push(e.tagName.toLowerCase() + (e.getAttribute("class") ? "." + e.getAttribute("class") : "") + " has " + has.toFixed(2) + ": " + (e.textContent.trim() || e.value || "").slice(0, 40));
		}
	}
	return found;
})()`
