package storetest

import (
	"os"
	"syscall"
)

const (
	// memoryFolder is a file system in memory on Linux, where a commit does not wait for
	// a disk. A killed Postgres loses nothing there: the files outlive its processes.
	memoryFolder = "/dev/shm"
	// memoryRoom, in bytes, is several times what all test processes of a run store at
	// the same time. Many containers have less, and use the disk.
	memoryRoom = 6 << 30
)

// clusterParent is the folder for clusters of tests: in memory where there is room,
// unless TMPDIR names another.
func clusterParent() string {
	var room syscall.Statfs_t
	if os.Getenv("TMPDIR") != "" || syscall.Statfs(memoryFolder, &room) != nil ||
		room.Bavail*uint64(room.Bsize) < memoryRoom || syscall.Access(memoryFolder, 2|1) != nil {
		return os.TempDir()
	}
	return memoryFolder
}
