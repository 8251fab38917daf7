package developers

import (
	"testing"

	"purser/ids"
	"purser/web/site"
)

func TestABrowserCannotChooseTheIDOfAKey(t *testing.T) {
	t.Parallel()
	app, other, form := ids.New(), ids.New(), ids.New()
	id := site.IDFor(app, form)
	if id != site.IDFor(app, form) || id == form || id == site.IDFor(other, form) || id == site.IDFor(app, ids.New()) {
		t.Error("the id does not follow from the application and the form alone")
	}
	if [6]byte(id[:6]) != [6]byte(form[:6]) {
		t.Error("the id has another time than the form")
	}
}
