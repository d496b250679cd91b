-- Makes the next pass read the images of a payload again although its content is the same.
create or replace function request_image_refresh(of_digest text, of_source text) returns void
language sql
as $$
  select reread_images(array(
    select l.image_digest from image_link l where l.digest = of_digest and l.source = of_source))
$$;
