-- Packages that list a file which another program reads: nobody sees whether they are in use (docs/contract.md#in-use).
-- They are among `cut_packages`, too, for brokers of the release before.
alter table summary_image add column interpreted_packages text[] not null default '{}';
