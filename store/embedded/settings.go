package embedded

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
)

// settings are those that differ from Postgres's defaults, and those that a guarantee
// depends on. Postgres reads them after its own postgresql.conf and before those of ALTER
// SYSTEM.
const settings = `# Purser writes this file at every start of Postgres: changes here are lost.
# To change a setting for good, use ALTER SYSTEM.

# Only through the socket, only for the user of Postgres and for root.
listen_addresses = ''
port = %[1]s
unix_socket_permissions = 0700
max_connections = 200

# An acknowledged charge survives any crash.
fsync = on
full_page_writes = on
synchronous_commit = on

# Many small writes: few checkpoints, small full pages.
max_wal_size = 4GB
min_wal_size = 512MB
checkpoint_timeout = 15min
wal_compression = %[2]s

# By the memory of the machine.
shared_buffers = %[3]dMB
effective_cache_size = %[4]dMB
maintenance_work_mem = %[5]dMB
work_mem = 8MB
%[6]s

# Short statements on a disk that seeks fast.
jit = off
random_page_cost = 1.1

# Balances are rewritten all the time and events only added: look often, and
# long before a fifth of a large table has changed, which is the default.
autovacuum_naptime = 15s
autovacuum_max_workers = 2
autovacuum_vacuum_scale_factor = 0.05
autovacuum_vacuum_insert_scale_factor = 0.05
autovacuum_vacuum_cost_limit = 1000

timezone = 'UTC'
log_timezone = 'UTC'
lc_messages = 'C'
log_line_prefix = '%%m [%%p] %%d '
log_lock_waits = on
log_startup_progress_interval = 10s # a start waits for as long as a recovery advances
`

// writeSettings replaces the file atomically.
func (c *cluster) writeSettings(ctx context.Context, bin binaries, as account) error {
	m := sizeFor(machineMemory())
	text := fmt.Sprintf(settings, port, c.walCompression(ctx, bin, as), m.sharedBuffers, m.cache, m.maintenance,
		sharedMemory(runtime.GOOS, "/dev/shm", minSharedMemory))
	draft := c.path(confName + ".new")
	if err := os.WriteFile(draft, []byte(text), 0o644); err != nil {
		return err
	}
	// Postgres may run as another user than we; the folder keeps others out.
	if err := os.Chmod(draft, 0o644); err != nil {
		return err
	}
	return os.Rename(draft, c.path(confName))
}

// includeSettings makes a new cluster read our file, which is beside its folder. We may be
// root here and the folder another user's, so no link is followed out of it.
func includeSettings(data string) error {
	folder, err := os.OpenRoot(data)
	if err != nil {
		return err
	}
	defer folder.Close()
	conf, err := folder.OpenFile("postgresql.conf", os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	defer conf.Close()
	if _, err := fmt.Fprintf(conf, "\ninclude '../%s'\n", confName); err != nil {
		return err
	}
	return conf.Sync()
}

// walCompression is lz4, which is much cheaper than pglz, unless this Postgres was built
// without it: then it would refuse to start.
func (c *cluster) walCompression(ctx context.Context, bin binaries, as account) string {
	cmd := exec.CommandContext(ctx, bin.postgres(), "-D", c.path(dataName),
		"-C", "wal_compression", "-c", "wal_compression=lz4", "-c", "config_file="+os.DevNull)
	cmd.SysProcAttr, cmd.Dir, cmd.Env = as.attr(), "/", environment()
	if err := cmd.Run(); err != nil {
		return "on"
	}
	return "lz4"
}

// minSharedMemory, in bytes, is room for the statistics and for parallel queries.
const minSharedMemory = 256 << 20

// sharedMemory is the setting for where Postgres keeps what its processes share for a
// while. By default initdb chooses files in /dev/shm if it can make one there. Many
// containers make it too small for more; then it is System V shared memory, which needs
// no file system. macOS has no such folder, and little System V memory.
func sharedMemory(system, folder string, least uint64) string {
	if system != "linux" {
		return ""
	}
	var room syscall.Statfs_t
	if err := syscall.Statfs(folder, &room); err != nil || room.Bavail*uint64(room.Bsize) < least {
		return "dynamic_shared_memory_type = sysv"
	}
	return ""
}

// sizes are in MiB.
type sizes struct{ sharedBuffers, cache, maintenance int }

// sizeFor is shared_buffers: an eighth of the memory, between the default and 2 GiB. Past
// that, the system's page cache is as good, and the page tables of backends grow.
func sizeFor(memory int) sizes {
	return sizes{
		sharedBuffers: min(max(memory/8, 128), 2048),
		cache:         max(memory/2, 256),
		maintenance:   min(max(memory/32, 32), 256),
	}
}

// machineMemory is the memory that we may use, in MiB: the machine's, or the container's
// limit. If neither is known, a small machine is assumed.
func machineMemory() int {
	memory := 1024
	if total := memTotal(); total > 0 {
		memory = total
	}
	for _, file := range []string{"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"} {
		text, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		// "max", the word for no limit, is no number.
		if limit, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil {
			memory = int(min(int64(memory), limit>>20))
		}
	}
	return memory
}

func memTotal() int {
	text, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		var kib int
		if _, err := fmt.Sscanf(line, "MemTotal: %d kB", &kib); err == nil {
			return kib >> 10
		}
	}
	return 0
}
