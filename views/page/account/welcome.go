package account

import (
	"purser/docs"
	"purser/views/component"
)

// Server is what the welcome page says of the server that shows it.
type Server struct {
	Version string
	Address string // where callers reach it, without a slash at the end
	Program string // how the purser command is called on this machine
}

// Start is the page at the server's own address.
type Start struct {
	Server
	NotSetUp bool // there is no account yet
}

// call has the names of the getting-started guide, so that each step finds what the one
// before it has made.
func (s Server) call() docs.Call {
	return docs.Call{Address: s.Address, Identity: "user-42", Credit: "tokens", Feature: "chat"}
}

// command is a line to run in a terminal.
func command(id, label, text string) component.CommandLine {
	return component.CommandLine{ID: id, Label: "Command to " + label, Text: text, Language: "sh"}
}
