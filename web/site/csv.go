package site

import (
	"bytes"
	"encoding/csv"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"purser/fault"
	"purser/httpd"
	"purser/ids"
)

// CSVFile responds with a CSV attachment.
func CSVFile(name string, header []string, rows [][]string) Response {
	var body bytes.Buffer
	w := csv.NewWriter(&body)
	// Writing into memory does not fail.
	_ = w.Write(header)
	for _, row := range rows {
		cells := make([]string, len(row))
		for i, cell := range row {
			cells[i] = escapeFormula(cell)
		}
		_ = w.Write(cells)
	}
	w.Flush()
	return download(name, "text/csv; charset=utf-8", body.Bytes())
}

// Part is the part of a file's name that says which rows it has, such as "-newest-10000",
// if there are more.
func Part(which string, rows int, more bool) string {
	if !more {
		return ""
	}
	return "-" + which + "-" + strconv.Itoa(rows)
}

// formulaPrefixes start a formula in spreadsheets; the full-width ones do in East Asian
// versions.
const formulaPrefixes = "=+-@\t\r\n＝＋－＠"

// escapeFormula prevents CSV injection: spreadsheets run cells that start with these
// characters as formulas. A plain negative number is unchanged.
func escapeFormula(cell string) string {
	// Locales with a decimal comma split fields at semicolons and line breaks, even within quotes.
	cell = inner.ReplaceAllString(cell, "$1'$2")
	first, _ := utf8.DecodeRuneInString(cell)
	if cell == "" || !strings.ContainsRune(formulaPrefixes, first) || isNumber(cell) {
		return cell
	}
	return "'" + cell
}

var inner = regexp.MustCompile(`([;\t\r\n]"*)([=+\-@＝＋－＠])`)

func isNumber(cell string) bool {
	digits := strings.TrimPrefix(cell, "-")
	return digits != "" && strings.Trim(digits, "0123456789.") == ""
}

// exportsAtOnce bounds the memory of exports: a file takes up to 40 MB. An organization
// has two of them at most.
const exportsAtOnce = 3

// Export bounds the files that are in memory, each until its client has read it. Others
// are refused.
func (s *Site) Export(file func(*Request) (Response, error)) func(*Request) (Response, error) {
	return aFewAtOnce(s.exports, "Too many exports are in progress. Try again in a moment.", file)
}

// comparisonsAtOnce bounds the memory of comparisons of catalogs, of which an organization has
// two at most: one at the limit of terms allocates about 20 MB.
const comparisonsAtOnce = 3

// Comparison bounds the comparisons of catalogs that are in memory, as Export does for files.
func (s *Site) Comparison(page func(*Request) (Response, error)) func(*Request) (Response, error) {
	return aFewAtOnce(s.comparisons, "Too many catalogs are being compared. Try again in a moment.", page)
}

// reportsAtOnce bounds the memory of reports of usage, of which an organization has four at
// most: one adds up to 50,000 groups, 10 MB, and keeps them while it waits to read the period
// before, with as many.
const reportsAtOnce = 8

// Report bounds the reports of usage that are in memory, as Export does for files.
func (s *Site) Report(page func(*Request) (Response, error)) func(*Request) (Response, error) {
	return aFewAtOnce(s.reports, "Too many usage reports are in progress. Try again in a moment.", page)
}

func aFewAtOnce(running *httpd.InFlight[ids.ID], refusal string, handle func(*Request) (Response, error)) func(*Request) (Response, error) {
	return func(req *Request) (Response, error) {
		if running.Enter(req.Org.ID, 1) != nil {
			return Response{}, fault.Newf(fault.Overloaded, "%s", refusal)
		}
		req.afterSend = func() { running.Leave(req.Org.ID, 1) }
		return handle(req)
	}
}

// Timestamp formats a time for spreadsheets; 0 is empty.
func Timestamp(at int64) string {
	if at == 0 {
		return ""
	}
	return time.UnixMilli(at).UTC().Format("2006-01-02T15:04:05.000Z")
}
