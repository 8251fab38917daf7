package accounts

import (
	"fmt"
	"strings"
	"testing"

	"rsc.io/qr"
)

func TestQRCodeDrawsEachDarkModule(t *testing.T) {
	t.Parallel()
	const text = "otpauth://totp/Purser:ann@example.com?issuer=Purser&secret=AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
	drawn, err := drawQR(text)
	if err != nil {
		t.Fatal(err)
	}
	code, err := qr.Encode(text, qr.M)
	if err != nil {
		t.Fatal(err)
	}
	dark := map[[2]int]bool{}
	for run := range strings.SplitSeq(strings.TrimSuffix(drawn.Path, "z"), "z") {
		var x, y, wide, back int
		if _, err := fmt.Sscanf(run, "M%d %dh%dv1h-%d", &x, &y, &wide, &back); err != nil || wide != back {
			t.Fatalf("%q: %v", run, err)
		}
		for i := range wide {
			dark[[2]int{x + i, y}] = true
		}
	}
	for y := range code.Size {
		for x := range code.Size {
			if dark[[2]int{x, y}] != code.Black(x, y) {
				t.Fatalf("the module at %d, %d is wrong", x, y)
			}
		}
	}
	if drawn.Size != code.Size {
		t.Errorf("it is %d wide", drawn.Size)
	}
}
