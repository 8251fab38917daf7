package embedded

import (
	"errors"
	"os"
	"path/filepath"
)

// CreateFile creates a file that only its owner can read. It appears complete and survives
// a power failure. CreateFile fails with os.ErrExist if another process created the file
// first, which then survives, too.
func CreateFile(path, content string) error {
	folder := filepath.Dir(path)
	draft, err := os.CreateTemp(folder, filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer os.Remove(draft.Name())
	_, err = draft.WriteString(content)
	if err := errors.Join(err, draft.Sync(), draft.Close()); err != nil {
		return err
	}
	return errors.Join(os.Link(draft.Name(), path), SyncFolder(folder))
}

// SyncFolder makes new and renamed files of a folder survive a power failure.
func SyncFolder(path string) error {
	folder, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}
