package main

import (
	"bytes"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"purser/store/embedded"
	"purser/tenancy/vault"
)

// secret is the installation's key, from which a key per purpose is derived.
type secret string

const (
	secretFile = "secret.key"
	derivedKey = 32
)

// loadSecret reads the secret from the settings or from the data folder. It is empty before the
// first start. Nodes on one database must share it, so with an external database it must be set.
func loadSecret(c config) (secret, error) {
	if c.secretKey != "" {
		return secret(c.secretKey), nil
	}
	if err := requireSecret(c); err != nil {
		return "", err
	}
	path := filepath.Join(c.data, secretFile)
	kept, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", folderError(c.data, err)
	}
	kept = bytes.TrimRight(kept, "\r\n") // an editor or a shell ends the line
	if len(kept) < minSecretKey {
		return "", fmt.Errorf("%s is shorter than %d characters: restore it from a backup", path, minSecretKey)
	}
	return secret(kept), nil
}

// requireSecret refuses an external database without a secret.
func requireSecret(c config) error {
	if c.secretKey == "" && c.databaseURL != "" {
		return errors.New("PURSER_SECRET_KEY is required with DATABASE_URL: set it to at least 32 random characters, the same on every node")
	}
	return nil
}

func newSecret() secret { return secret(rand.Text() + rand.Text()) }

// keepSecret writes a new secret to the data folder, for good: the database may have recorded it
// even if that seems to have failed. Of two processes that start at once, both use the one
// written first.
func keepSecret(c config, s secret) (secret, error) {
	path := filepath.Join(c.data, secretFile)
	err := os.MkdirAll(filepath.Dir(path), 0o755)
	if err == nil {
		err = embedded.CreateFile(path, string(s))
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return "", folderError(c.data, err)
	}
	return loadSecret(c)
}

// vault seals with the secret, and opens with it or the previous one.
func (s secret) vault(previous string) (*vault.Vault, error) {
	if previous == "" {
		return vault.New(rand.Reader, []byte(s))
	}
	return vault.New(rand.Reader, []byte(s), []byte(previous))
}

// derive returns the key for one purpose.
func (s secret) derive(purpose string) []byte {
	key, err := hkdf.Key(sha256.New, []byte(s), nil, "purser "+purpose, derivedKey)
	if err != nil {
		panic(err) // only for sizes beyond HKDF's limit
	}
	return key
}
