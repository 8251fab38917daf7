package browsertest

import (
	"strings"
	"testing"

	"purser/billing"
	"purser/views/component"
	"purser/views/layout"
	catalogpage "purser/views/page/catalog"
)

// Each row's percentage has room for its digits, and shows its label and its sign,
// however narrow the screen.
func TestPlanFormShowsItsPercentages(t *testing.T) {
	t.Parallel()
	form := catalogpage.PlanForm{
		Frame: layout.Frame{Title: "Pro", Current: "plans", Person: layout.Person{Name: "Ann Example", Email: "ann@example.com"}, Org: layout.Place{Name: "Acme", Href: "/o/acme"}, App: layout.Application{Place: layout.Place{Name: "Chat", Href: "/o/acme/a/chat"}}},
		Base:  "/plans", Stored: billing.Plan{Key: "pro", Name: "Pro"},
		Values: catalogpage.PlanValues{Key: "pro", Name: "Pro", Amount: "29.00", Currency: "usd", Interval: "month", Multipliers: []catalogpage.MultiplierRow{{Feature: "messages", Percent: "12.5"}, {}}},
	}
	fresh := form
	fresh.New, fresh.Stored, fresh.Values.Key = true, billing.Plan{}, ""
	address := serve(t, map[string]view{"/edit": catalogpage.Plan(form), "/new": catalogpage.Plan(fresh)})
	tabs := Open(t, Phone).Several(t)
	for _, name := range []string{"edit", "new"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tab := tabs.Take(t)
			tab.Visit(address + "/" + name)
			tab.On([]Screen{Desktop, Phone, Narrow}, func(screen Screen) {
				cramped := tab.Evaluate(`[...document.querySelectorAll("[name$='.percent']")].filter(input => {
					const cell = input.closest("td").getBoundingClientRect(), sign = input.nextElementSibling.getBoundingClientRect();
					const label = parseFloat(getComputedStyle(input.closest("td"), "::before").width);
					return input.clientWidth < 72 || sign.width < 8 || sign.right > Math.min(cell.right, innerWidth) ||
						label > input.closest(".field").getBoundingClientRect().left - cell.left;
				}).length`)
				if cramped != "0" {
					t.Errorf("%s of the percentages are cut off on a %s", cramped, screen.Name)
				}
				tab.CheckWidth()
				tab.Picture("plan-" + name + "-" + screen.Name)
			})
			tab.CheckThemes()
		})
	}
}

// A feature with a long name doesn't squeeze the lists beside it until their choice is cut.
func TestPlanFormShowsWhatIsChosen(t *testing.T) {
	t.Parallel()
	longest := strings.Repeat("W", 120) + " "
	form := catalogpage.PlanForm{
		Frame: layout.Frame{Title: "Pro", Current: "plans", Person: layout.Person{Name: "Ann Example", Email: "ann@example.com"}, Org: layout.Place{Name: "Acme", Href: "/o/acme"}, App: layout.Application{Place: layout.Place{Name: "Chat", Href: "/o/acme/a/chat"}}},
		Base:  "/plans", New: true, ChooseFeatures: true, Features: []component.Option{{Text: "Choose a feature"}, {Value: "chat", Text: longest + "(chat)"}},
		Values: catalogpage.PlanValues{Limits: []catalogpage.LimitRow{{Feature: "chat", Limit: "9007199254740991", Period: "month", Overage: "credits"}}},
	}
	tab := Open(t, Desktop)
	tab.Visit(serve(t, map[string]view{"/new": catalogpage.Plan(form)}) + "/new")
	tab.On(append([]Screen{Desktop}, betweenScreens...), func(screen Screen) {
		cut := tab.Evaluate(`[...document.querySelectorAll("[name$='.period'], [name$='.overage']")].filter(list => {
			const text = new OffscreenCanvas(1, 1).getContext("2d"), style = getComputedStyle(list);
			text.font = style.fontSize + " " + style.fontFamily;
			return list.clientWidth - 44 < text.measureText(list.selectedOptions[0].text).width ||
				list.getBoundingClientRect().right > list.closest("td").getBoundingClientRect().right;
		}).length`)
		if cut != "0" {
			t.Errorf("%s of the lists cut what is chosen, or leave their cell, on a %s", cut, screen.Name)
		}
		tab.CheckWidth()
		tab.CheckFrames()
	})
}

// A row that is added or removed leaves the list where it was, not the top of the form.
func TestPlanFormShowsTheListThatChanged(t *testing.T) {
	t.Parallel()
	form := catalogpage.PlanForm{
		Frame: layout.Frame{Title: "New plan", Current: "plans", Person: layout.Person{Name: "Ann Example", Email: "ann@example.com"}},
		Base:  "/plans", New: true, Values: catalogpage.PlanValues{Limits: []catalogpage.LimitRow{{}}, Grants: []catalogpage.GrantRow{{}}, Multipliers: []catalogpage.MultiplierRow{{}}},
	}
	tab := Open(t, Phone)
	tab.Visit(serve(t, map[string]view{"/plans/new": catalogpage.Plan(form)}) + "/plans/new")
	tab.WaitFocus("#field-key")
	for _, button := range []string{"add.grants", "remove.multipliers.0"} {
		tab.Follow(`button[value="` + button + `"]`)
		tab.until("see the list", `(() => { const top = document.querySelector(":target")?.getBoundingClientRect().top; return top >= 0 && top < innerHeight })()`, true)
		if tab.Evaluate(`document.activeElement.id`) == "field-key" {
			t.Errorf("%s moves the focus to the key", button)
		}
	}
}
