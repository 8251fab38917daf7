package main

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"syscall"
)

// listenError explains why an address cannot be listened on and how to fix it.
func listenError(setting, addr string, err error) error {
	var name *net.DNSError
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Errorf("%s: %s is already in use: stop the other program, or choose another port", setting, addr)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return fmt.Errorf("%s: %s is not an address of this machine: use 0.0.0.0 for all addresses, or 127.0.0.1", setting, addr)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%s: permission denied to listen on %s: choose a port above 1023, or grant CAP_NET_BIND_SERVICE", setting, addr)
	case errors.As(err, &name):
		return fmt.Errorf("%s: the host of %s cannot be found: use an address of this machine, such as 127.0.0.1", setting, addr)
	}
	return fmt.Errorf("%s: can't listen on %s (%w): use HOST:PORT with a port from 1 to 65535", setting, addr, err)
}

// folderError explains why the data folder cannot be used and how to fix it.
func folderError(folder string, err error) error {
	cause := err
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		cause = path.Err
	}
	switch {
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("the data folder %s cannot be read and written by user %d (%w): choose another with --data (PURSER_DATA), or give it to that user with chown", folder, os.Geteuid(), cause)
	case errors.Is(err, syscall.ENOTDIR), errors.Is(err, syscall.EEXIST), errors.Is(err, syscall.EISDIR):
		return fmt.Errorf("the data folder %s is not a folder, or has something other than a file at %s: choose another with --data (PURSER_DATA)", folder, secretFile)
	case errors.Is(err, syscall.EROFS):
		return fmt.Errorf("the data folder %s is on a read-only file system: choose another with --data (PURSER_DATA)", folder)
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return fmt.Errorf("the data folder %s has no space left: free some, or choose another with --data (PURSER_DATA)", folder)
	}
	return fmt.Errorf("the data folder %s cannot be used (%w): choose another with --data (PURSER_DATA)", folder, err)
}
