package browsertest

import (
	"github.com/chromedp/chromedp"
)

// CheckFonts holds that the text and the controls of the page use the embedded fonts,
// and that these are loaded: any other font depends on the machine.
func (t *Tab) CheckFonts() {
	t.tb.Helper()
	for _, stray := range t.strayFonts() {
		t.tb.Errorf("%s: not in an embedded font: %s", t.Address(), stray)
	}
}

func (t *Tab) strayFonts() []string {
	t.tb.Helper()
	return read(t, "look at the fonts", chromedp.Evaluate[[]string](strayFonts))
}

// strayFonts names the first element of each kind that does not use an embedded font.
// FontFaceSet.check answers true for a family that no stylesheet declares, so the
// families are compared too.
const strayFonts = `(() => {
	const embedded = ["Inter", "JetBrains Mono"];
	const faces = [...document.fonts].filter((face) => embedded.includes(face.family.replaceAll('"', "")));
	const found = new Map();
	const look = (element) => {
		if (!element.checkVisibility({visibilityProperty: true})) return;
		const style = getComputedStyle(element), family = style.fontFamily.split(",")[0].replaceAll('"', "");
		const face = faces.find((face) => face.family.replaceAll('"', "") === family);
		if (face && face.status === "loaded" && document.fonts.check(style.fontWeight + " " + style.fontSize + ' "' + family + '"')) return;
		const kind = element.tagName.toLowerCase() + " in " + family + (face ? ", which is " + face.status : "");
		if (!found.has(kind)) found.set(kind, kind + ": " + element.textContent.trim().slice(0, 40));
	};
	const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
	while (texts.nextNode()) if (texts.currentNode.data.trim()) look(texts.currentNode.parentElement);
	document.querySelectorAll("input, select, textarea, button").forEach(look);
	return [...found.values()];
})()`

// loadFonts waits for the fonts that the page uses: until then its text has other widths.
func (t *Tab) loadFonts() {
	t.tb.Helper()
	if !t.scriptless {
		t.do("load the fonts", chromedp.Evaluate[chromedp.Void]("document.fonts.ready.then(() => undefined)", chromedp.EvalAwaitPromise))
	}
}
