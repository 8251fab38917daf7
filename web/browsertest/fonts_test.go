package browsertest

import (
	"context"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/css"
	"github.com/chromedp/chromedp"
)

// drawnWith is what the browser has drawn the text of an element with.
func (t *Tab) drawnWith(selector string) []css.PlatformFontUsage {
	t.tb.Helper()
	return read(t, "ask for the fonts of "+selector, chromedp.QueryAfter(chromedp.CSS(selector), func(ctx context.Context, target *chromedp.Target, nodes []*chromedp.Node) (fonts []css.PlatformFontUsage, err error) {
		reply, err := cdp.Call(ctx, target, css.GetPlatformFontsForNode, css.GetPlatformFontsForNodeParams{NodeID: nodes[0].NodeID})
		for _, font := range reply.Fonts {
			fonts = append(fonts, *font)
		}
		return fonts, err
	}))
}

func TestFonts(t *testing.T) {
	t.Parallel()
	address := serve(t, map[string]view{"/gallery": samplePages["gallery"], "/plain": markup(`<h1>x</h1><p>y</p>`)})

	t.Run("text is drawn with the embedded fonts", func(t *testing.T) {
		t.Parallel()
		tab := Open(t, Desktop)
		tab.Visit(address + "/gallery")
		for selector, want := range map[string]string{"h1": "Inter", ".amount": "Inter", "main button": "Inter", ".formula": "JetBrains Mono"} {
			drawn := tab.drawnWith(selector)
			if len(drawn) != 1 || !strings.HasPrefix(drawn[0].FamilyName, want) || !drawn[0].IsCustomFont {
				t.Errorf("%s is drawn with %+v", selector, drawn)
			}
		}
	})

	t.Run("digits have one width", func(t *testing.T) {
		t.Parallel()
		tab := Open(t, Desktop)
		tab.Visit(address + "/gallery")
		if widths := tab.Evaluate(`new Set([...Array(10).keys()].map((digit) => {
			const text = document.createElement("span");
			text.textContent = String(digit).repeat(20);
			document.querySelector("tbody td").append(text);
			const width = text.getBoundingClientRect().width;
			text.remove();
			return width;
		})).size`); widths != "1" {
			t.Errorf("they have %s", widths)
		}
	})

	t.Run("a font of the machine is found", func(t *testing.T) {
		t.Parallel()
		tab := Open(t, Desktop)
		tab.Visit(address + "/plain")
		if stray := tab.strayFonts(); len(stray) != 2 {
			t.Errorf("found %q", stray)
		}
	})
}
