package store_test

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"io"
)

// The types of messages that the proxy looks into. Client and server use the same
// letter for different things.
const (
	clientParse = 'P'
	clientBind  = 'B'
	clientQuery = 'Q'

	serverCommandComplete = 'C'
	serverDataRow         = 'D'
)

// What a client may send instead of the startup message.
const (
	sslRequest    = 80877103
	gssRequest    = 80877104
	cancelRequest = 80877102
)

// maxFrame is far beyond what any test sends: past it the framing was lost.
const maxFrame = 64 << 20

var errFraming = errors.New("fault proxy: this is not Postgres's framing")

// proxyFrame is one message, with its header.
type proxyFrame []byte

func (f proxyFrame) kind() byte   { return f[0] }
func (f proxyFrame) body() []byte { return f[5:] }

// frameText reads the string that starts the body, and what follows it.
func frameText(body []byte) (string, []byte) {
	before, after, _ := bytes.Cut(body, []byte{0})
	return string(before), after
}

func readFrame(r *bufio.Reader) (proxyFrame, error) {
	header, err := r.Peek(5)
	if err != nil {
		return nil, err
	}
	return readSized(r, 1, binary.BigEndian.Uint32(header[1:]))
}

// readStartup reads the first message, which has no type.
func readStartup(r *bufio.Reader) (message []byte, code uint32, err error) {
	header, err := r.Peek(8)
	if err != nil {
		return nil, 0, err
	}
	code = binary.BigEndian.Uint32(header[4:])
	message, err = readSized(r, 0, binary.BigEndian.Uint32(header))
	return message, code, err
}

// readSized reads a message whose length, which counts itself but nothing before
// it, is known.
func readSized(r *bufio.Reader, before int, length uint32) ([]byte, error) {
	if length < 4 || length > maxFrame {
		return nil, errFraming
	}
	message := make([]byte, before+int(length))
	_, err := io.ReadFull(r, message)
	return message, err
}
