package site

import (
	"strings"
	"testing"
)

func TestCSVFile(t *testing.T) {
	t.Parallel()
	file := CSVFile("deposits.csv", []string{"identity"}, [][]string{
		{`=HYPERLINK("http://evil")`}, {"+1"}, {"-2+3"}, {"@cmd"}, {"\tx"}, {"\rx"}, {"＝1"}, {"-12.5"}, {"12"}, {"x;=1"}, {"x\n=1;y"}, {"x\r=1"}, {"x\r\n=1"}, {"x;y=1"}, {`x;"=1;y`}, {`plain, "quoted"`},
	})
	want := "identity\n\"'=HYPERLINK(\"\"http://evil\"\")\"\n'+1\n'-2+3\n'@cmd\n'\tx\n\"'\rx\"\n'＝1\n-12.5\n12\nx;'=1\n\"x\n'=1;y\"\n\"x\r'=1\"\n\"x\n'=1\"\nx;y=1\n\"x;\"\"'=1;y\"\n\"plain, \"\"quoted\"\"\"\n"
	if got := strings.ReplaceAll(string(file.body), "\r\n", "\n"); got != want {
		t.Errorf("got\n%q, want\n%q", got, want)
	}
	if got := file.header.Get("Content-Disposition"); got != `attachment; filename=deposits.csv` {
		t.Errorf("it is sent as %q", got)
	}
}
