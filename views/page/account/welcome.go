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

func (s Server) makeKey() component.CommandLine {
	return component.CommandLine{ID: "make-key", Label: "Command to create an API key", Text: s.Program + " keys create --org Acme --app Chat --preset setup", Language: "sh"}
}

// Read from the terminal, so that the secret stays out of the shell's history.
func (s Server) holdKey() component.CommandLine {
	return component.CommandLine{ID: "hold-key", Label: "Command to set the API key", Text: "read -r PURSER_KEY && export PURSER_KEY", Language: "sh"}
}

func (s Server) defineCredit() component.CommandLine {
	return component.CommandLine{ID: "define-credit", Label: "Command to create a credit", Text: s.call().DefineCredit(), Language: "sh"}
}

func (s Server) fundWallet() component.CommandLine {
	return component.CommandLine{ID: "fund-wallet", Label: "Command to deposit credits", Text: s.call().FundWallet(), Language: "sh"}
}

func (s Server) priceFeature() component.CommandLine {
	return component.CommandLine{ID: "price-feature", Label: "Command to create a feature", Text: s.call().PriceFeature(), Language: "sh"}
}

func (s Server) sendEvent() component.CommandLine {
	return component.CommandLine{ID: "send-event", Label: "Command to send an event", Text: s.call().TrackUsage(), Language: "sh"}
}

func (s Server) readWallet() component.CommandLine {
	return component.CommandLine{ID: "read-wallet", Label: "Command to get the wallet", Text: s.call().ReadWallet(), Language: "sh"}
}
