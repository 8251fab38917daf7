package accounts

import (
	"fmt"
	"strings"

	"rsc.io/qr"

	accountpage "purser/views/page/account"
)

// drawQR draws a QR code as one path of horizontal runs of dark modules.
func drawQR(text string) (accountpage.QR, error) {
	code, err := qr.Encode(text, qr.M)
	if err != nil {
		return accountpage.QR{}, fmt.Errorf("web: QR code: %w", err)
	}
	var path strings.Builder
	for y := range code.Size {
		for x := 0; x < code.Size; x++ {
			from := x
			for x < code.Size && code.Black(x, y) {
				x++
			}
			if x > from {
				fmt.Fprintf(&path, "M%d %dh%dv1h-%dz", from, y, x-from, x-from)
			}
		}
	}
	return accountpage.QR{Size: code.Size, Path: path.String()}, nil
}
