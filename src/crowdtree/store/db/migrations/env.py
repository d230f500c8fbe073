"""How Alembic reaches the database: over the connection of the store."""

from alembic import context

from crowdtree.store.db.tables import metadata


def run() -> None:
    """Run the migrations on the store's connection."""
    connection = context.config.attributes["connection"]
    context.configure(connection=connection, target_metadata=metadata, render_as_batch=True)
    with context.begin_transaction():
        context.run_migrations()


if hasattr(context, "config"):  # only Alembic sets it: importing this file does nothing
    run()
