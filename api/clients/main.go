package main

import (
	"fmt"
	"os"

	"purser/api"
)

func main() {
	document, err := api.Document()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(string(document))
}
