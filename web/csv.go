package web

import (
	"bytes"
	"encoding/csv"
	"regexp"
	"strings"
	"unicode/utf8"
)

// csvFile answers with a table for a spreadsheet.
func csvFile(name string, header []string, rows [][]string) answer {
	var body bytes.Buffer
	w := csv.NewWriter(&body)
	// Writing into memory does not fail.
	_ = w.Write(header)
	for _, row := range rows {
		cells := make([]string, len(row))
		for i, cell := range row {
			cells[i] = harmlessCell(cell)
		}
		_ = w.Write(cells)
	}
	w.Flush()
	return download(name, "text/csv; charset=utf-8", body.Bytes())
}

// formulaBegins are the characters that make a formula; the wide ones do so in
// spreadsheets of East Asia.
const formulaBegins = "=+-@\t\r\n＝＋－＠"

// harmlessCell keeps a spreadsheet from running what somebody typed: it takes a
// cell that begins so for a formula. A plain negative number is left alone.
func harmlessCell(cell string) string {
	// Where a comma is part of numbers, files are cut at semicolons, and quotes do not help.
	cell = inner.ReplaceAllString(cell, "$1'$2")
	first, _ := utf8.DecodeRuneInString(cell)
	if cell == "" || !strings.ContainsRune(formulaBegins, first) || isNumber(cell) {
		return cell
	}
	return "'" + cell
}

var inner = regexp.MustCompile(`([;\t])([=+\-@＝＋－＠])`)

func isNumber(cell string) bool {
	digits := strings.TrimPrefix(cell, "-")
	return digits != "" && strings.Trim(digits, "0123456789.") == ""
}
