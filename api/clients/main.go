package main

import (
	"fmt"
	"os"

	"purser/api"
)

func main() {
	root, err := api.Document()
	var document []byte
	if err == nil {
		document, err = root.JSON()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(string(document))
}
