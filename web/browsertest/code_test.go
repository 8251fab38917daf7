package browsertest

import "testing"

// Commands of the guides are read before they are pasted. A desktop has room for a
// line of a hundred characters, and the button stands beside or above it.
func TestCodeHasRoom(t *testing.T) {
	t.Parallel()
	views := docsPages(t)
	address := serve(t, map[string]view{"/start": views["docs-start"], "/payments": views["docs-payments"]})
	tab := Open(t, Desktop)
	for _, name := range []string{"start", "payments"} {
		tab.Visit(address + "/" + name)
		if blocks := tab.Count(".prose > .command"); blocks < 3 {
			t.Fatalf("%s has %d blocks of code", name, blocks)
		}
		const cramped = `[...document.querySelectorAll(".prose > .command")].filter(block => {
			const text = block.querySelector("pre"), button = block.querySelector("button");
			const letter = document.createElement("code");
			letter.textContent = "0".repeat(100);
			text.append(letter);
			const line = letter.getBoundingClientRect().width;
			letter.remove();
			const room = text.getBoundingClientRect(), taken = button.getBoundingClientRect();
			return text.clientWidth < line || room.right > taken.left && room.top < taken.bottom;
		}).length`
		if found := tab.Evaluate(cramped); found != "0" {
			t.Errorf("%s: %s blocks are cramped", name, found)
		}
	}
}
