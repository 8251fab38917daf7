package developers

import (
	"testing"

	"purser/ids"
)

func TestABrowserCannotChooseTheIDOfAKey(t *testing.T) {
	t.Parallel()
	app, other, form := ids.New(), ids.New(), ids.New()
	id := keyIDFor(app, form)
	if id != keyIDFor(app, form) || id == form || id == keyIDFor(other, form) || id == keyIDFor(app, ids.New()) {
		t.Error("the id does not follow from the application and the form alone")
	}
	if [6]byte(id[:6]) != [6]byte(form[:6]) {
		t.Error("the id has another time than the form")
	}
}
