//! The kind of file system that a worktree is on.

use crate::git::repo::platform::file_system;
use crate::git::worktree::Worktree;

impl Worktree<'_> {
    /// The device that the top is on, if its file system is known to change a directory's times whenever a name in
    /// it comes or goes.
    pub fn reliable_mtime_device(&self) -> Option<rustix::fs::Dev> {
        // ext2, ext3 and ext4; XFS; Btrfs; F2FS; Bcachefs; tmpfs; overlayfs, which writes into one of these.
        const RELIABLE_MTIME: [u64; 7] =
            [0xef53, 0x5846_5342, 0x9123_683e, 0xf2f5_2010, 0xca45_1a4e, 0x0102_1994, 0x794c_7630];
        self.device_of(|kind| RELIABLE_MTIME.contains(&kind))
    }

    /// The device that the top is on, unless its file system is known to be a network's or a program's.
    pub fn local_device(&self) -> Option<rustix::fs::Dev> {
        // NFS; SMB, CIFS and SMB2; 9P; FUSE; Ceph; AFS twice; Coda; NCP; Lustre; GPFS; OCFS2; GFS2; OrangeFS; BeeGFS;
        // and what shows a virtual machine its host's files: VirtualBox, VMware, Parallels.
        const NETWORK: [u64; 20] = [
            0x6969,
            0x517b,
            0xff53_4d42,
            0xfe53_4d42,
            0x0102_1997,
            0x6573_5546,
            0x00c3_6400,
            0x5346_414f,
            0x6b41_4653,
            0x7375_7245,
            0x564c,
            0x0bd0_0bd0,
            0x4750_4653,
            0x7461_636f,
            0x0116_1970,
            0x2003_0528,
            0x1983_0326,
            0x786f_4256,
            0xbacb_acbc,
            0x7c7c_6673,
        ];
        self.device_of(|kind| !NETWORK.contains(&kind))
    }

    fn device_of(&self, fits: impl Fn(u64) -> bool) -> Option<rustix::fs::Dev> {
        fits(file_system(&self.top.fd)?).then(|| Some(rustix::fs::fstat(&self.top.fd).ok()?.st_dev))?
    }
}
