package browsertest

import (
	"bytes"
	"cmp"
	"image"
	"image/color"
	"image/png"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/chromedp/chromedp"
)

// picturesFolder is set by make screenshots.
const picturesFolder = "PURSER_SCREENSHOTS"

// Picture keeps the page as name.png when pictures are asked for. Elsewhere it does
// nothing, so a test may ask wherever the page is worth a look.
func (t *Tab) Picture(name string) {
	t.tb.Helper()
	folder := os.Getenv(picturesFolder)
	if folder == "" {
		return
	}
	taken, err := png.Decode(bytes.NewReader(read(t, "take a picture", chromedp.FullScreenshot(100))))
	if err != nil {
		t.tb.Fatal(err)
	}
	var kept bytes.Buffer
	encoder := png.Encoder{CompressionLevel: png.BestCompression}
	if err := encoder.Encode(&kept, small(taken)); err != nil {
		t.tb.Fatal(err)
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.tb.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, name+".png"), kept.Bytes(), 0o644); err != nil {
		t.tb.Fatal(err)
	}
}

const (
	// maxPictureHeight cuts off the end of long pages.
	maxPictureHeight = 1200
	paletteSize      = 256
)

// small is the upper part of a picture in a palette of its own. Our pages have few
// colours, so what is lost are shades at the edges of letters; a file takes a third.
func small(taken image.Image) image.Image {
	bounds := taken.Bounds()
	bounds.Max.Y = min(bounds.Max.Y, bounds.Min.Y+maxPictureHeight)
	counts := map[color.RGBA]int{}
	for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
		for x := bounds.Min.X; x < bounds.Max.X; x++ {
			counts[rgbaOf(taken.At(x, y))]++
		}
	}
	palette, nearest := paletteOf(counts), map[color.RGBA]uint8{}
	for shade := range counts {
		nearest[shade] = uint8(palette.Index(shade))
	}
	made := image.NewPaletted(bounds, palette)
	for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
		for x := bounds.Min.X; x < bounds.Max.X; x++ {
			made.SetColorIndex(x, y, nearest[rgbaOf(taken.At(x, y))])
		}
	}
	return made
}

// paletteOf takes the most used shade of each region of the colours, and so also
// those of a small badge; then the most used of the rest.
func paletteOf(counts map[color.RGBA]int) (palette color.Palette) {
	byUse := slices.SortedFunc(maps.Keys(counts), func(a, b color.RGBA) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a.R, b.R), cmp.Compare(a.G, b.G), cmp.Compare(a.B, b.B))
	})
	const region = 24 // steps of a channel
	seen := map[color.RGBA]bool{}
	var rest []color.RGBA
	for _, shade := range byUse {
		of := color.RGBA{shade.R / region, shade.G / region, shade.B / region, 0}
		if seen[of] || len(palette) == paletteSize {
			rest = append(rest, shade)
			continue
		}
		seen[of] = true
		palette = append(palette, shade)
	}
	for _, shade := range rest[:min(len(rest), paletteSize-len(palette))] {
		palette = append(palette, shade)
	}
	return palette
}

func rgbaOf(c color.Color) color.RGBA { return color.RGBAModel.Convert(c).(color.RGBA) }
