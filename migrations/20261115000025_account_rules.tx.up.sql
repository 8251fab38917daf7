-- Until when a password that the command line gave out works. It only lets its owner
-- choose another. NULL for a password that its owner chose.
ALTER TABLE passwords ADD COLUMN temporary_until bigint;

--bun:split

-- The name under which the command line or the setup made an organization. The command
-- line finds it by that name, and no other organization by any name: members may create
-- and rename theirs as they like.
ALTER TABLE organizations
  ADD COLUMN command_name    text,
  ADD COLUMN requires_factor boolean NOT NULL DEFAULT false; -- of members, before they may act

--bun:split

-- An organization without members was made by the command line. Of several with one name
-- the first keeps it: that is the one that an earlier release would have refused to choose.
UPDATE organizations o SET command_name = o.name
WHERE NOT EXISTS (SELECT FROM members m WHERE m.org_id = o.id)
  AND NOT EXISTS (SELECT FROM organizations e WHERE e.name = o.name AND e.id < o.id);

--bun:split

ALTER TABLE organizations ADD CONSTRAINT organization_has_its_own_command_name UNIQUE (command_name);
