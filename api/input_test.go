package api

import (
	"testing"

	"purser/metering"
)

func TestInput(t *testing.T) {
	in, err := decodeAnything([]byte(`{"text":"a","int":7,"bool":true,"null":null,"amount":"9999999999999999999","object":{"text":"b"},"list":[{"int":1},{"int":2}]}`))
	if err != nil {
		t.Fatal(err)
	}
	t.Run("reads what is there", func(t *testing.T) {
		list := in.Objects("list")
		if in.Text("text") != "a" || in.Int("int") != 7 || !in.Bool("bool") || in.Amount("amount") != metering.MaxAmount ||
			in.Object("object").Text("text") != "b" || len(list) != 2 || list[1].Int("int") != 2 {
			t.Errorf("%v was read otherwise", in)
		}
		if *in.OptionalText("text") != "a" || *in.OptionalInt("int") != 7 || *in.OptionalAmount("amount") != metering.MaxAmount {
			t.Errorf("%v was read otherwise as optional", in)
		}
	})
	t.Run("reads the zero value where nothing is", func(t *testing.T) {
		if in.Has("x") || in.Text("x") != "" || in.Int("x") != 0 || in.Bool("x") || in.Amount("x") != 0 || in.Object("x").Has("y") || len(in.Objects("x")) != 0 {
			t.Error("something was read out of nothing")
		}
		if in.OptionalText("x") != nil || in.OptionalInt("x") != nil || in.OptionalAmount("x") != nil {
			t.Error("something optional was read out of nothing")
		}
	})
	t.Run("tells null from absent", func(t *testing.T) {
		if !in.Has("null") || in.Text("null") != "" {
			t.Error("null is not there, or is something")
		}
	})
	t.Run("panics on a type that the document does not say", func(t *testing.T) {
		defer func() {
			if recover() == nil {
				t.Error("a string was read as an integer")
			}
		}()
		in.Int("text")
	})
}
